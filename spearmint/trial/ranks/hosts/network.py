"""The network by which the hosts of a trial reach each other."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915
_DISCARD = 9
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def address_towards(host: str) -> str:
    """Return the address of this host that ``host`` can reach; sends nothing.

    Raises:
        OSError: The name is unknown, or there is no route.
    """
    kind, _, _, _, place = socket.getaddrinfo(host, _DISCARD, type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as probe:
        probe.connect(place)
        return str(probe.getsockname()[0])


def interface_variables(address: str) -> dict[str, str]:
    """Return the variables that make gloo, NCCL and TensorPipe use the interface of ``address``.

    None if no interface is known for it: then these libraries choose.
    """
    name = _interface_of(address)
    return dict.fromkeys(_INTERFACES, name) if name else {}


def _interface_of(address: str) -> str:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):  # it has no IPv4 address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return ""
