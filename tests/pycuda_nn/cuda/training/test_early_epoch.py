"""An epoch that is queued early, without a GPU: whose results an epoch returns, and when."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.rng import EpochOrder
from pycuda_nn.training.fit_to_data import recipe
from tests.pycuda_nn.cuda.step.recording import DRIVERS

STEPS = 3


class Transfer:
    """Two places for losses; a queued epoch overwrites the place of the one before the last."""

    def __init__(self, log: list[str]) -> None:
        self._log, self._side, self._losses = log, 0, [np.zeros(STEPS)] * 2
        self.rates: list[Any] = []

    def send(self, step: int, rates: Any, drawn: Any, _: Any) -> None:
        self._log.append(f"queue {drawn[1]} at step {step}")
        self.rates.append(rates)
        self._epoch, self._side = drawn[1], 1 - self._side

    def fetch(self, *_: Any) -> int:
        self._losses[self._side] = np.full(STEPS, float(self._epoch))
        return self._side

    def fetched(self, _: int, side: int) -> Any:
        return self._losses[side]


class Evaluator:
    """Two places for sums, filled when an epoch is queued."""

    def __init__(self, transfer: Transfer) -> None:
        self._transfer, self._sums = transfer, [0.0, 0.0]

    def queue(self, _: Any, some: range, side: int) -> None:
        self._sums[side] = self._transfer.fetched(STEPS, side)[0] * len(some)

    def collected(self, _: range, side: int) -> tuple[float, float]:
        return self._sums[side], 0.0

    def mean(self, sums: tuple[float, float], n: int) -> Any:
        return SimpleNamespace(loss=sums[0] / n)


@pytest.fixture
def opened() -> Iterator[tuple[Any, list[str]]]:
    """Return a session without a GPU, and the list of what it does."""
    with patch.dict(sys.modules, {name: MagicMock() for name in DRIVERS}):
        made = importlib.import_module("pycuda_nn.cuda.training.session")
        log: list[str] = []
        session = object.__new__(made.CudaSession)
        transfer, event = Transfer(log), MagicMock()
        event.synchronize.side_effect = lambda: log.append("wait")
        made.cuda.Event.return_value = event
        vars(session).update(
            _plan=SimpleNamespace(recipe=recipe(nn.TrainConfig())),
            _device=SimpleNamespace(
                active=contextlib.nullcontext, synchronize=lambda: log.append("settle")
            ),
            _streams=MagicMock(), _order=MagicMock(), _epoch=MagicMock(), _transfer=transfer,
            _evaluator=Evaluator(transfer), _rows={"valid": SimpleNamespace(n=7)},
            _step=0, _expected=None, _begun=None, _valid=None,
        )  # fmt: skip
        yield session, log


def order(epoch: int) -> EpochOrder:
    return EpochOrder(n=70, seed=1, epoch=epoch)


RATES = np.full(STEPS, 0.1)


def test_each_epoch_returns_its_own_results(opened: tuple[Any, list[str]]) -> None:
    session, log = opened
    late = {1, 4}  # the epoch after these begins after their results
    for epoch in range(6):
        if epoch not in late and epoch < 5:
            session.expect(order(epoch + 1), RATES)
        losses = session.run_epoch(order(epoch), RATES)
        assert losses.tolist() == [epoch] * STEPS
        assert session.evaluate("valid").loss == epoch
        assert session._step == STEPS * (epoch + 1)
    assert log == [
        *("queue 0 at step 0", "queue 1 at step 3", "wait", "wait"),
        *("queue 2 at step 6", "queue 3 at step 9", "wait", "queue 4 at step 12", "wait", "wait"),
        *("queue 5 at step 15", "wait"),
    ]


def test_the_bias_corrections_are_those_of_its_steps(opened: tuple[Any, list[str]]) -> None:
    session, _ = opened
    rates = []
    for begins_early in (True, False):
        session._step, session._transfer.rates = 0, []
        for epoch in range(3):
            if begins_early and epoch < 2:
                session.expect(order(epoch + 1), RATES)
            session.run_epoch(order(epoch), RATES)
        rates.append(np.concatenate(session._transfer.rates))
    early, late = rates
    np.testing.assert_array_equal(early, late)
    assert len(set(early)) == 3 * STEPS


def test_after_an_interruption_nothing_runs(opened: tuple[Any, list[str]]) -> None:
    session, log = opened
    session.expect(order(1), RATES)
    session._evaluator.collected = MagicMock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        session.run_epoch(order(0), RATES)
    assert log[-1] == "settle"
    assert session._begun is None
    assert session._expected is None
