"""Bring connections of ranks on other hosts to the store of rank 0, which listens on 127.0.0.1.

The store of PyTorch lets in everybody who can connect. :class:`Meeting` on the first host listens
for the other hosts. It sends a random text and passes on only who answers with its HMAC-SHA256 by
the secret of the trial. :class:`Door` on each other host does that for the ranks there.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable

LOOPBACK = "127.0.0.1"
_BYTES = 32
_ANSWER_S = 20.0
_STEP_S = 0.05
_MOST_STRANGERS = 256  # connections that have not answered yet


class _Relay(threading.Thread):
    """Accepts connections, and handles each in a thread.

    Attributes:
        port: The port on which it listens.
    """

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, 0), family=family, backlog=128)
        self.port = int(self._listening.getsockname()[1])
        self._strangers = threading.BoundedSemaphore(_MOST_STRANGERS)
        self._ends = threading.Event()

    def run(self) -> None:
        """Accept until ``close``."""
        while not self._ends.is_set():
            try:
                link = self._listening.accept()[0]
            except OSError:
                time.sleep(_STEP_S)  # closed, or too many open files
                continue
            self._strangers.acquire()
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        self._ends.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError), link:
            try:
                is_known = self._knows(link)
            finally:
                self._strangers.release()
            if is_known and (other := self._connect()) is not None:
                with other:
                    _pump(link, other)

    def _knows(self, link: socket.socket) -> bool:
        """Return whether what connected may pass."""
        return True

    def _connect(self) -> socket.socket | None:
        raise NotImplementedError


class Meeting(_Relay):
    """Listens on ``address`` for the doors of other hosts.

    Args:
        address: Address of this host that they reach.
        secret: What they know.
        target: Returns the port of the store; None as long as it is not known.
    """

    def __init__(self, address: str, secret: bytes, target: Callable[[], int | None]) -> None:
        super().__init__(address)
        self._secret, self._target = secret, target

    def _knows(self, link: socket.socket) -> bool:
        link.settimeout(_ANSWER_S)
        link.sendall(asked := secrets.token_bytes(_BYTES))
        is_known = hmac.compare_digest(_receive(link), _answer(self._secret, asked))
        link.settimeout(None)
        return is_known

    def _connect(self) -> socket.socket | None:
        while not self._ends.is_set():
            with contextlib.suppress(OSError):  # the store does not listen yet
                if port := self._target():
                    return socket.create_connection((LOOPBACK, port))
            time.sleep(_STEP_S)
        return None


class Door(_Relay):
    """Listens on 127.0.0.1 for ranks of this host, and connects them to a meeting."""

    def __init__(self, meeting: tuple[str, int], secret: bytes) -> None:
        super().__init__(LOOPBACK)
        self._meeting, self._secret = meeting, secret

    def _connect(self) -> socket.socket | None:
        other = socket.create_connection(self._meeting, timeout=_ANSWER_S)
        other.sendall(_answer(self._secret, _receive(other)))
        other.settimeout(None)
        return other


def _answer(secret: bytes, asked: bytes) -> bytes:
    return hmac.digest(secret, asked, "sha256")


def _receive(link: socket.socket) -> bytes:
    found = b""
    while len(found) < _BYTES and (part := link.recv(_BYTES - len(found))):
        found += part
    return found


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Copy both ways until both have closed."""
    for link in (one, other):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    back = threading.Thread(target=_copy, args=(other, one), daemon=True)
    back.start()
    _copy(one, other)
    back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
