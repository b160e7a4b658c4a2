"""Connections that have not shown the secret yet, all watched at once: none makes another wait."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import selectors
import socket
import time
from collections import Counter

BYTES = 32
"""Length of the random text and of its answer."""

_ANSWER_S = 10.0
_MOST = 256


def answer(secret: bytes, asked: bytes) -> bytes:
    """Return what only those can send who know the secret."""
    return hmac.digest(secret, asked, "sha256")


class _Stranger:
    """One connection, and what came from it."""

    def __init__(self, link: socket.socket, address: str) -> None:
        self.link, self.address, self.came = link, address, b""
        self.asked, self.deadline = secrets.token_bytes(BYTES), time.monotonic() + _ANSWER_S
        link.setblocking(False)
        link.send(self.asked)  # fits into the buffer of a new connection


class Strangers:
    """Asks each connection for the proof; connections that are slow or too many are closed.

    At most 256 connections wait, each 10 s. One more closes the oldest one of the address that has
    the most: many connections of one host leave those of other hosts open.
    """

    def __init__(self, selector: selectors.BaseSelector, secret: bytes) -> None:
        self._selector, self._secret = selector, secret
        self._waiting: dict[socket.socket, _Stranger] = {}  # the oldest first

    def admit(self, link: socket.socket, address: str) -> None:
        """Ask a new connection, and wait for its answer."""
        try:
            stranger = _Stranger(link, address)
        except OSError:  # it has closed already
            link.close()
            return
        self._waiting[link] = stranger
        self._selector.register(link, selectors.EVENT_READ)
        if len(self._waiting) > _MOST:
            counts = Counter(each.address for each in self._waiting.values())
            crowd = counts.most_common(1)[0][0]
            self._close(next(n for n, each in self._waiting.items() if each.address == crowd))

    def proven(self, link: socket.socket) -> bool:
        """Read what came from a connection; return whether it is the whole right answer."""
        if (stranger := self._waiting.get(link)) is None:  # closed since it was selected
            return False
        part = b""
        with contextlib.suppress(OSError):
            part = link.recv(BYTES - len(stranger.came))
        stranger.came += part
        if part and len(stranger.came) < BYTES:
            return False
        if not hmac.compare_digest(stranger.came, answer(self._secret, stranger.asked)):
            self._close(link)
            return False
        self._forget(link)
        link.setblocking(True)
        return True

    def close_late(self) -> None:
        """Close the connections whose time is over."""
        now = time.monotonic()
        for link in [n for n, each in self._waiting.items() if each.deadline <= now]:
            self._close(link)

    def close(self) -> None:
        """Close all."""
        for link in list(self._waiting):
            self._close(link)

    def _forget(self, link: socket.socket) -> None:
        self._selector.unregister(link)
        del self._waiting[link]

    def _close(self, link: socket.socket) -> None:
        self._forget(link)
        link.close()
