"""Sessions on fake GPUs, whose kernels do nothing: threads, recorded steps, memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pycuda_nn.backends.testing import ADAM
from pycuda_nn.rng import EpochOrder
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, Operation

RATES = np.full(5, 0.01)  # 70 rows in minibatches of 16


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
    ran: list[Operation],
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
    ran.clear()
    found = opened(loss, gpus=2)
    where = {"dealt": "dealt out over the memory", "pinned": "in pinned host memory"}[place]
    assert f"train: 70 rows {where}" in caplog.text
    found.run_epoch(np.arange(70), RATES)
    names = {one.name for one in ran}
    assert ("gather_dealt" in names) == (place == "dealt")
    found.close()


def test_every_rank_runs_the_same_exchanges_in_the_same_order(
    opened: Callable[..., Any], ran: list[Operation]
) -> None:
    session = opened(gpus=3)
    ran.clear()
    session.run_epoch(np.arange(70), RATES)
    queued: list[list[Any]] = [[], [], []]
    for one in ran:
        if one.name in ("exchange", "send_sums"):
            queued[one.rank].append((one.name, one.blocks))
    assert queued[0] == queued[1] == queued[2]
    assert len(queued[0]) == 5 * 2 * 3  # steps, weights and biases, layers
    session.close()


def test_every_rank_draws_the_order_in_one_launch(
    opened: Callable[..., Any], ran: list[Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranks wait for each other, so the work of their threads before an epoch adds up."""
    session = opened(gpus=2)
    session.run_epoch(EpochOrder(n=70, seed=1, epoch=0), RATES)
    ran.clear()
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
