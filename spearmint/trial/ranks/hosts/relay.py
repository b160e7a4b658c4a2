"""Bring connections of ranks on other hosts to the store of rank 0, which listens on 127.0.0.1.

The store of PyTorch lets in everybody who can connect. :class:`Meeting` on the first host listens
for the other hosts. It sends a random text and passes on only who answers with its HMAC-SHA256 by
the secret of the trial. :class:`Door` on each other host does that for the ranks there.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable

from spearmint.trial.ranks.hosts.strangers import BYTES, Strangers, answer

LOOPBACK = "127.0.0.1"
_ANSWER_S = 20.0
_ATTEMPTS_S = 60.0
_STEP_S = 0.05
_WELCOME = b"+"


class _Relay(threading.Thread):
    """Accepts connections, and handles each in a thread.

    Attributes:
        port: The port on which it listens.
    """

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, 0), family=family, backlog=1024)
        self.port = int(self._listening.getsockname()[1])
        self._ends = threading.Event()

    def run(self) -> None:
        """Accept until ``close``."""
        while not self._ends.is_set():
            if (accepted := self._accept()) is not None:
                self._start(accepted[0])

    def close(self) -> None:
        """Accept no more."""
        self._ends.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> tuple[socket.socket, str] | None:
        try:
            link, place = self._listening.accept()
        except BlockingIOError:  # who connected has closed already
            return None
        except OSError:
            time.sleep(_STEP_S)  # closed, or too many open files
            return None
        return link, str(place[0])

    def _start(self, link: socket.socket) -> None:
        threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError), link:
            if (other := self._connect(link)) is not None:
                with other:
                    _pump(link, other)

    def _connect(self, link: socket.socket) -> socket.socket | None:
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
        self._listening.setblocking(False)

    def run(self) -> None:
        """Accept until ``close``; a thread handles only who knows the secret."""
        with selectors.DefaultSelector() as selector:
            strangers = Strangers(selector, self._secret)
            with contextlib.suppress(ValueError):  # it was closed before this thread ran
                selector.register(self._listening, selectors.EVENT_READ)
            while not self._ends.is_set():
                for key, _ in selector.select(_STEP_S):
                    self._hear(key.fileobj, strangers)
                strangers.close_late()
            strangers.close()

    def _hear(self, link: object, strangers: Strangers) -> None:
        if link is self._listening:
            if (accepted := self._accept()) is not None:
                strangers.admit(*accepted)
        elif isinstance(link, socket.socket) and strangers.proven(link):
            self._start(link)

    def _connect(self, link: socket.socket) -> socket.socket | None:
        link.sendall(_WELCOME)
        while not self._ends.is_set():
            with contextlib.suppress(OSError):  # the store does not listen yet
                if port := self._target():
                    return socket.create_connection((LOOPBACK, port))
            time.sleep(_STEP_S)
        return None


class Door(_Relay):
    """Listens on 127.0.0.1 for ranks of this host, and connects them to a meeting.

    It retries for a minute: a meeting with too many strangers can take it for one of them.
    """

    def __init__(self, meeting: tuple[str, int], secret: bytes) -> None:
        super().__init__(LOOPBACK)
        self._meeting, self._secret = meeting, secret

    def _connect(self, link: socket.socket) -> socket.socket | None:
        deadline = time.monotonic() + _ATTEMPTS_S
        while not self._ends.is_set() and time.monotonic() < deadline:
            try:
                other = socket.create_connection(self._meeting, timeout=_ANSWER_S)
                if self._is_welcome(other):
                    return other
            except ConnectionRefusedError:  # the meeting is over
                break
            except OSError:
                pass
            time.sleep(_STEP_S)
        return None

    def _is_welcome(self, other: socket.socket) -> bool:
        try:
            other.sendall(answer(self._secret, _receive(other)))
            is_welcome = other.recv(1) == _WELCOME
            other.settimeout(None)
        except OSError:
            other.close()
            raise
        if not is_welcome:
            other.close()
        return is_welcome


def _receive(link: socket.socket) -> bytes:
    found = b""
    while len(found) < BYTES and (part := link.recv(BYTES - len(found))):
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
