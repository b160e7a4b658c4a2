"""Find the address of this machine that AWS and the nodes see."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import urllib.request
from urllib.parse import urlsplit

from starcluster.errors import Unreachable

CHECK_IP = "https://checkip.amazonaws.com"
TIMEOUT_S = 5.0
_LONGEST = 64
_FIX = (
    "Set ssh_from in the template, or use --ssh-from, e.g. --ssh-from 203.0.113.7 with the address "
    "of this machine or of its network as the internet sees it."
)


def address_of_caller(endpoint: str, node: str = "") -> str:
    """Return the address from which this machine reaches its nodes.

    Args:
        endpoint: Address of the API of EC2. If it is not AWS's, the nodes are in its network.
        node: A private address of the nodes, if they have no public one.

    Raises:
        Unreachable: It is unknown.
    """
    host = urlsplit(endpoint).hostname or ""
    if node:
        return _source(node)
    if not _is_aws(host):
        return _source(host)
    return _public_address()


def _is_aws(host: str) -> bool:
    ends = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
    return host.endswith(ends)


def _source(host: str) -> str:
    """Return the address of this machine from which it reaches ``host``; sends nothing."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host, 22, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as unsent:
            unsent.connect(where)
            return str(unsent.getsockname()[0])
    except OSError as error:
        raise Unreachable(f"no route from this machine to {host}: {error}", _FIX) from error


def _public_address() -> str:
    # Without a proxy: SSH does not use it, so its address is not the one that the nodes see.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(CHECK_IP, timeout=TIMEOUT_S) as answer:
            text = answer.read(_LONGEST).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(
            f"cannot find the public address of this machine: {CHECK_IP}: {reason}", _FIX
        ) from error
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        found = None
    if found is None or not found.is_global:
        raise Unreachable(
            f"cannot find the public address of this machine: {CHECK_IP} answered {text!r}", _FIX
        )
    return str(found)
