"""Who reaches the store of rank 0: only who knows the secret, whatever strangers do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TypeVar

import pytest

from spearmint.trial.ranks.hosts import relay, strangers
from spearmint.trial.ranks.hosts.relay import Door, Meeting

HERE = "127.0.0.1"
SECRET = b"right"


Started = TypeVar("Started", Meeting, Door)


class Hosts:
    """The store, the meeting in front of it, and doors of another host."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.store = stack.enter_context(socket.create_server((HERE, 0)))
        self.store.settimeout(60)
        self.meeting = Meeting(HERE, SECRET, lambda: int(self.store.getsockname()[1]))
        self._started(self.meeting)

    def door(self, secret: bytes = SECRET) -> Door:
        return self._started(Door((HERE, self.meeting.port), secret))

    def _started(self, started: Started) -> Started:
        started.start()
        self._stack.enter_context(closing(started))
        return started

    def stranger(self, source: str = HERE) -> socket.socket:
        """Connect, and read the question without an answer."""
        link = self._stack.enter_context(
            socket.create_connection((HERE, self.meeting.port), 60, source_address=(source, 0))
        )
        assert len(link.recv(strangers.BYTES)) == strangers.BYTES
        return link

    def assert_reached_by(self, door: Door) -> None:
        with socket.create_connection((HERE, door.port)) as rank:
            rank.sendall(b"hello")
            link, _ = self.store.accept()
            with link:
                assert link.recv(5) == b"hello"
                link.sendall(b"answer")
                assert rank.recv(6) == b"answer"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with ExitStack() as stack:
        yield Hosts(stack)


def test_only_who_knows_the_secret_reaches_the_store(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_ATTEMPTS_S", 0.1)
    with socket.create_connection((HERE, hosts.door(b"wrong").port), 60) as rank:
        assert rank.recv(1) == b""
    stranger = hosts.stranger()
    stranger.sendall(b"x" * strangers.BYTES)
    assert stranger.recv(1) == b""
    monkeypatch.setattr(relay, "_ATTEMPTS_S", 60.0)
    hosts.assert_reached_by(hosts.door())  # the first that arrives


def test_silent_and_slow_strangers_delay_nobody(hosts: Hosts) -> None:
    silent = [hosts.stranger() for _ in range(strangers._MOST)]
    silent[-1].sendall(b"x")
    hosts.assert_reached_by(hosts.door())
    assert silent[0].recv(1) == b""  # the oldest one made room


def test_strangers_of_one_address_close_none_of_another(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "_MOST", 3)
    monkeypatch.setattr(strangers, "_ANSWER_S", 600.0)
    slow = hosts.stranger("127.0.0.2")
    crowd = [hosts.stranger() for _ in range(6)]
    assert [link.recv(1) for link in crowd[:4]] == [b""] * 4
    slow.setblocking(False)
    with pytest.raises(BlockingIOError):
        slow.recv(1)


def test_a_stranger_who_sends_a_byte_at_a_time_is_closed(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "_ANSWER_S", 0.2)
    slow = hosts.stranger()
    with contextlib.suppress(ConnectionError):  # closed before all that came was read
        slow.sendall(b"x")
        assert slow.recv(1) == b""


def test_a_door_that_is_taken_for_a_stranger_retries(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = strangers.Strangers.admit
    closed: list[socket.socket] = []

    def crowded(self: strangers.Strangers, link: socket.socket, address: str) -> None:
        if len(closed) < 3:
            closed.append(link)
            link.close()
        else:
            admit(self, link, address)

    monkeypatch.setattr(strangers.Strangers, "admit", crowded)
    hosts.assert_reached_by(hosts.door())
    assert len(closed) == 3
