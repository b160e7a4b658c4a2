"""Sessions on fake GPUs, whose kernels do nothing: threads, recorded steps, memory, failures."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pycuda_nn.backends.testing import ADAM, SGD, sample_network, sample_parts, sample_recipe
from pycuda_nn.errors import PycudaNNError
from pycuda_nn.rng import EpochOrder
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, Operation, reset
from tests.pycuda_nn.cuda.parallel.fakes.nvml import FakeNvml
from tests.waiting import until

RATES = np.full(5, 0.01)  # 70 rows in minibatches of 16
RAN: list[Operation] = []


def _ended(operations: list[Operation]) -> None:
    RAN.extend(operations)
    for one in operations:
        one.after = frozenset()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a session; all memory and threads must be gone in the end."""
    reset(gpus=8)
    MACHINE.run = _ended
    with faked_drivers():
        from pycuda_nn.cuda.backend import CudaBackend
        from pycuda_nn.cuda.options import CudaOptions
        from pycuda_nn.cuda.parallel import choose
        from pycuda_nn.cuda.parallel.session import DataParallelSession
        from pycuda_nn.cuda.runtime import module

        timed = DataParallelSession.step_times
        monkeypatch.setattr(DataParallelSession, "step_times", lambda self: timed(self, 1e-3))

        monkeypatch.setattr(module, "build", lambda source, arch, options: b"kernels")
        monkeypatch.setattr(choose, "_seconds_alone", lambda *_: 1.0)

        def open_session(
            loss: str = "softmax", *, dropout: float = 0.0, optimizer: Any = SGD, **options: Any
        ) -> Any:
            network = sample_network(loss, "relu", dropout)
            backend = CudaBackend(CudaOptions(deterministic=True, **options))
            recipe, params = sample_recipe(optimizer), network.initial_params(5)
            return backend.open(network, recipe, sample_parts(loss), params)

        yield open_session
    assert not MACHINE.allocations
    assert not MACHINE.stack
    assert not [one for one in threading.enumerate() if one.name.startswith(("GPU", "beats"))]
    reset()
    RAN.clear()


@pytest.mark.parametrize(
    "options",
    [
        {"gpus": 2},
        {"gpus": 3, "precision": "bf16", "exact_gradients": True},
        {"gpus": 2, "exchange": "nccl"},
        {"gpus": 8, "precision": "fp16", "loss": "squared", "dropout": 0.5, "optimizer": ADAM},
    ],
    ids=str,
)
def test_a_training_and_its_state(opened: Callable[..., Any], options: dict[str, Any]) -> None:
    session = opened(**options)
    for epoch in range(3):
        losses = session.run_epoch(EpochOrder(n=70, seed=1, epoch=epoch), RATES)
        assert losses.shape == (5,)
    assert set(session.evaluate("valid").__dict__) >= {"loss"}
    state = session.state()
    assert int(state["step"]) == 15
    session.load_state(state)
    for name, values in session.state().items():  # no kernel has changed it
        np.testing.assert_array_equal(values, state[name])
    session.run_epoch(np.arange(70), RATES)
    assert session.replicas_are_equal()
    session.close()


@pytest.mark.parametrize("loss", ["softmax", "squared", "logistic"])
@pytest.mark.parametrize(("room", "place"), [(6000, "dealt"), (0, "pinned")])
def test_rows_that_do_not_fit(
    opened: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    room: int,
    place: str,
    loss: str,
) -> None:
    from pycuda_nn.cuda.parallel import rank, session

    monkeypatch.setattr(session, "_RESERVE_BYTES", 0)
    monkeypatch.setattr(rank.RankSession, "room", lambda _: room)
    caplog.set_level("INFO")
    RAN.clear()
    found = opened(loss, gpus=2)
    where = {"dealt": "dealt out over the memory", "pinned": "in pinned host memory"}[place]
    assert f"train: 70 rows {where}" in caplog.text
    found.run_epoch(np.arange(70), RATES)
    names = {one.name for one in RAN}
    assert ("gather_dealt" in names) == (place == "dealt")
    found.close()


def test_every_rank_runs_the_same_exchanges_in_the_same_order(opened: Callable[..., Any]) -> None:
    session = opened(gpus=3)
    RAN.clear()
    session.run_epoch(np.arange(70), RATES)
    queued: list[list[Any]] = [[], [], []]
    for one in RAN:
        if one.name in ("exchange", "send_sums"):
            queued[one.rank].append((one.name, one.blocks))
    assert queued[0] == queued[1] == queued[2]
    assert len(queued[0]) == 5 * 2 * 3  # steps, weights and biases, layers
    session.close()


def test_every_rank_draws_the_order_in_one_launch(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranks wait for each other, so the work of their threads before an epoch adds up."""
    session = opened(gpus=2)
    session.run_epoch(EpochOrder(n=70, seed=1, epoch=0), RATES)
    RAN.clear()
    graphs: list[set[str]] = []
    launch = MACHINE.launch

    def launched(capture: Any, stream: Any) -> None:
        graphs.append({one.name for one in capture.operations})
        launch(capture, stream)

    monkeypatch.setattr(MACHINE, "launch", launched)
    session.run_epoch(EpochOrder(n=70, seed=1, epoch=1), RATES)
    assert graphs.count({"sort_rows"}) == 2
    assert len(graphs) == 2 * 3  # an order, four steps, and the step on the remaining rows
    session.close()


def test_the_order_of_the_next_epoch_is_drawn_ahead(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another epoch follows, the steps read the order of theirs."""
    from pycuda_nn.cuda.parallel.step import SharedStep
    from pycuda_nn.cuda.training.order import DeviceOrder

    session = opened(gpus=2)
    drawn: list[int] = []  # epochs, on GPU 0
    trained: list[int] = []
    draw, replay = DeviceOrder.draw, SharedStep.replay

    def drawing(self: Any, stream: Any) -> None:
        if MACHINE.stack[-1] == 0:
            drawn.append(ctypes.c_uint64.from_address(self.drawn + 8).value)
        draw(self, stream)

    def replaying(self: Any, steps: int) -> None:
        if MACHINE.stack[-1] == 0 and drawn[-1] not in trained[-1:]:
            trained.append(drawn[-1])
        replay(self, steps)

    monkeypatch.setattr(DeviceOrder, "draw", drawing)
    monkeypatch.setattr(SharedStep, "replay", replaying)
    for epoch in (0, 1, 2, 7, 7, 8):
        session.run_epoch(EpochOrder(n=70, seed=1, epoch=epoch), RATES)
    session.close()
    assert trained == [0, 1, 2, 7, 8]
    assert drawn == [0, 1, 2, 3, 7, 8, 7, 8, 9]


def test_given_rows_follow_an_order_that_was_drawn_ahead(opened: Callable[..., Any]) -> None:
    session = opened(gpus=2)
    rank, given = session._made[0], np.arange(70)[::-1]
    session.run_epoch(EpochOrder(n=70, seed=1, epoch=0), RATES)
    session.run_epoch(given, RATES)
    rows = np.ctypeslib.as_array((ctypes.c_int32 * 70).from_address(rank._order.rows))
    np.testing.assert_array_equal(rows, given)
    session.close()


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
    assert nvml.ended
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


@pytest.mark.parametrize("when", ["never", "between epochs", "before"])
def test_an_error_between_epochs_ends_the_other_hosts(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """As of a full disk; an error that led to this training does not count."""
    from pycuda_nn.cuda.parallel import choose, session
    from pycuda_nn.cuda.parallel.hosts import World

    left: list[bool] = []
    presence: Any = SimpleNamespace(lost=lambda: None, leave=lambda *, done: left.append(done))
    world = World(size=2, first=0, unique_id=b"", presence=presence)
    monkeypatch.setattr(choose, "check_installed", lambda: None)
    monkeypatch.setattr(choose, "meet", lambda *_: world)
    monkeypatch.setattr(session, "joined", lambda *_: 1)

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
