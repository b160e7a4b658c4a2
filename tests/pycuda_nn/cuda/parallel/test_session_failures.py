"""Sessions on fake GPUs of which one fails, or whose other hosts do."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pycuda_nn.errors import PycudaNNError
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE
from tests.pycuda_nn.cuda.parallel.fakes.nvml import FakeNvml
from tests.waiting import until

RATES = np.full(5, 0.01)  # 70 rows in minibatches of 16


def test_a_rank_without_memory_ends_all(opened: Callable[..., Any]) -> None:
    MACHINE.sizes[1] = 1 << 20
    with pytest.raises(PycudaNNError, match=r"GPU 1 .*out of GPU memory") as caught:
        opened(gpus=3)
    assert "the other GPUs were stopped" in str(caught.value)


def test_a_rank_that_raises_in_an_epoch_ends_all(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pycuda_nn.cuda.parallel import rank

    session = opened(gpus=3)
    launch = rank.RankSession._launch

    def failing(self: Any, queued: Any, stopped: Any) -> None:
        if self.rank == 2:
            raise RuntimeError("broken")
        launch(self, queued, stopped)

    monkeypatch.setattr(rank.RankSession, "_launch", failing)
    with pytest.raises(RuntimeError, match="broken"):
        session.run_epoch(np.arange(70), RATES)
    session.close()


def test_a_gpu_that_falls_off_the_bus_ends_all(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver of the lost GPU does not answer any more; NVML says so, by the bus."""
    from pycuda_nn.cuda.parallel import rank, ranks, watchdog

    nvml, back = FakeNvml(), threading.Event()
    monkeypatch.setattr(watchdog, "_open_nvml", lambda: nvml)
    monkeypatch.setattr(watchdog, "_PERIOD_S", 0.01)
    monkeypatch.setattr(ranks, "_STOP_LIMIT_S", 0.0)
    session = opened(gpus=3)
    launch = rank.RankSession._launch

    def hanging(self: Any, queued: Any, stopped: Any) -> None:
        if self.rank == 1:
            nvml.lost.add("0000:01:00.0")
            back.wait()
        launch(self, queued, stopped)

    monkeypatch.setattr(rank.RankSession, "_launch", hanging)
    with pytest.raises(PycudaNNError, match=r"GPU 1 \(Fake\) has fallen off the bus") as caught:
        session.run_epoch(np.arange(70), RATES)
    assert "--resume" in caught.value.fix
    session.close()
    until(lambda: nvml.ended)
    back.set()
    until(lambda: not [one for one in threading.enumerate() if one.name.startswith("GPU")])
    MACHINE.allocations.clear()  # the end of the process frees what a thread that was stuck has


def test_no_rank_is_asked_for_other_hosts_while_it_is_closed(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pycuda_nn.cuda.parallel import choose, rank, session
    from pycuda_nn.cuda.parallel.hosts import World

    world = World(size=2, first=0, unique_id=b"")
    monkeypatch.setattr(choose, "check_installed", lambda: None)
    monkeypatch.setattr(choose, "meet", lambda *_: world)
    monkeypatch.setattr(session, "joined", lambda *_: 1)
    monkeypatch.setattr(session, "_WATCH_S", 0.01)
    asked, closed, was_open = threading.Event(), threading.Event(), []

    def problem(self: Any) -> None:
        asked.set()
        closed.wait(0.3)
        was_open.append(bool(self.__dict__))

    monkeypatch.setattr(rank.RankSession, "problem", problem)
    found = opened(gpus=2, hosts=2, meet="folder")
    asked.wait()
    found.close()
    closed.set()
    assert not [one for one in threading.enumerate() if one.name == "hosts"]
    assert all(was_open)


@pytest.fixture
def waiting(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[threading.Event]:
    """The GPUs of another host do not come to NCCL before this event, which the test sets."""
    from pycuda_nn.cuda.parallel import choose, ranks, session

    come = threading.Event()
    monkeypatch.setattr(choose, "check_installed", lambda: None)
    monkeypatch.setattr(session, "joined", lambda *_: come.wait() and 1)
    monkeypatch.setattr(session, "_WATCH_S", 0.01)
    monkeypatch.setattr(ranks, "_STOP_LIMIT_S", 0.0)
    yield come
    come.set()
    until(lambda: not [one for one in threading.enumerate() if one.name.startswith("GPU")])
    MACHINE.allocations.clear()  # of a thread that was given up: the end of the process frees it


def test_a_host_that_is_lost_before_nccl_has_connected_ends_the_others(
    opened: Callable[..., Any],
    waiting: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pycuda_nn.cuda.parallel import choose
    from pycuda_nn.cuda.parallel.hosts import World

    left: list[bool] = []
    presence: Any = SimpleNamespace(lost=lambda: 1, leave=lambda *, done: left.append(done))
    world = World(size=2, first=0, unique_id=b"", presence=presence)
    monkeypatch.setattr(choose, "meet", lambda *_: world)
    with pytest.raises(PycudaNNError, match="another host was lost: the process of host 1") as one:
        opened(gpus=1, hosts=2, meet="folder")
    assert "--resume" in one.value.fix
    assert left == [False]


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch, opened: Callable[..., Any]) -> list[bool]:
    """Two hosts have met; return whether this one has left as done."""
    from pycuda_nn.cuda.parallel import choose, rank, session
    from pycuda_nn.cuda.parallel.hosts import World

    told: list[bool] = []
    presence: Any = SimpleNamespace(lost=lambda: None, leave=lambda *, done: told.append(done))
    world = World(size=2, first=0, unique_id=b"", presence=presence)
    monkeypatch.setattr(choose, "check_installed", lambda: None)
    monkeypatch.setattr(choose, "meet", lambda *_: world)
    monkeypatch.setattr(session, "joined", lambda *_: 1)
    monkeypatch.setattr(session, "_WATCH_S", 0.001)
    monkeypatch.setattr(rank.RankSession, "problem", lambda _: None)
    return told


@pytest.mark.parametrize("when", ["never", "between epochs", "before"])
def test_an_error_between_epochs_ends_the_other_hosts(
    opened: Callable[..., Any], left: list[bool], when: str
) -> None:
    """As of a full disk; an error that led to this training does not count."""

    def train() -> None:
        found = opened(gpus=1, hosts=2, meet="folder")
        try:
            if when == "between epochs":
                raise OSError("disk full")
        finally:
            found.close()

    with pytest.raises(OSError, match="full") if when != "never" else contextlib.nullcontext():
        try:
            if when == "before":
                raise OSError("full, too")
            train()
        except OSError:
            if when == "before":
                train()
            raise
    assert left == [when != "between epochs"]


def test_a_training_that_began_after_an_error_can_end_later(
    opened: Callable[..., Any], left: list[bool]
) -> None:
    """As a session that is opened in an ``except`` block and used below it."""
    try:
        raise OSError("the first try")
    except OSError:
        session = opened(gpus=1, hosts=2, meet="folder")
    session.close()
    assert left == [True]


def test_hosts_that_cannot_connect_end_after_a_limit(
    opened: Callable[..., Any],
    waiting: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pycuda_nn.cuda.parallel import choose, session
    from pycuda_nn.cuda.parallel.hosts import World

    monkeypatch.setattr(choose, "meet", lambda *_: World(size=2, first=0, unique_id=b""))
    monkeypatch.setattr(session, "_JOIN_LIMIT_S", 0.0)
    with pytest.raises(PycudaNNError, match="did not connect within") as one:
        opened(gpus=1, hosts=2, meet="folder")
    assert "NCCL_SOCKET_IFNAME" in one.value.fix
