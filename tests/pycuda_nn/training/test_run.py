"""What a training names to its session before it needs it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.backends.numpy import NumpyBackend
from pycuda_nn.backends.numpy.session import NumpySession
from pycuda_nn.protocols import Session

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]
CONFIG = nn.TrainConfig(hidden=(4,), epochs=5, batch_size=32, schedule="cosine")


class Eager(NumpySession):
    """Checks that an expected epoch comes next, and that nobody asks for the state before it."""

    named: list[int]
    expected: tuple[Any, Any] | None = None

    def expect(self, order: Any, learning_rates: Any) -> bool:
        self.later = order, learning_rates
        self.named.append(order.epoch)
        return True

    def run_epoch(self, order: Any, learning_rates: Any) -> Any:
        if self.expected is not None:
            assert order == self.expected[0]
            np.testing.assert_array_equal(learning_rates, self.expected[1])
        self.expected, self.later = self.later, None
        return super().run_epoch(order, learning_rates)

    later: tuple[Any, Any] | None = None

    def params(self) -> Any:
        assert self.expected is None
        return super().params()

    def state(self) -> Any:
        assert self.expected is None
        return super().state()


class EagerBackend(NumpyBackend):
    def __init__(self) -> None:
        super().__init__()
        self.named: list[int] = []

    def open(self, *arguments: Any) -> Session:
        session = Eager(*arguments)
        session.named = self.named
        return session


@pytest.fixture(autouse=True)
def _every_epoch_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pycuda_nn.training.run._SHORT_S", math.inf)


def test_the_epoch_after_the_next_is_named_if_nobody_needs_the_state(parts: Parts) -> None:
    backend = EagerBackend()
    got = nn.train(CONFIG, *parts[:2], backend=backend)
    assert backend.named == [2, 3, 4]  # the first epoch shows how long one takes
    want = nn.train(CONFIG, *parts[:2], backend=NumpyBackend())
    np.testing.assert_array_equal(got.model.params, want.model.params)
    assert [report.train_loss for report in got.history] == [
        report.train_loss for report in want.history
    ]


@pytest.mark.parametrize("why", ["checkpoint", "patience", "a long epoch"])
def test_else_it_is_not(
    why: str, parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, config = EagerBackend(), CONFIG
    if why == "patience":
        config = dataclasses.replace(CONFIG, patience=5)
    if why == "a long epoch":
        monkeypatch.setattr("pycuda_nn.training.run._SHORT_S", 0.0)
    path = tmp_path / "checkpoint" if why == "checkpoint" else None
    nn.train(config, *parts[:2], backend=backend, checkpoint=path)
    assert not backend.named


def test_the_weights_of_a_network_that_on_epoch_ends_are_those_of_its_last_epoch(
    parts: Parts,
) -> None:
    """Else they would be those of the epoch that has begun since."""

    def told(_: int, report: nn.EpochReport) -> bool:
        return report.epoch == 3

    train, valid, _ = parts
    backend = EagerBackend()
    (got,) = nn.train_many([CONFIG], train, valid, backend=backend, on_epoch=told)
    assert not backend.named
    (want,) = nn.train_many([CONFIG], train, valid, backend=NumpyBackend(), on_epoch=told)
    assert isinstance(got, nn.TrainResult)
    assert isinstance(want, nn.TrainResult)
    assert len(got.history) == 3
    np.testing.assert_array_equal(got.model.params, want.model.params)
    nn.train_many([CONFIG], train, valid, backend=backend)  # nobody can end it
    assert backend.named == [2, 3, 4]


def test_the_times_of_the_epochs_add_up(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch that began early lasts from the report before it."""
    clock = iter(range(1000))
    monkeypatch.setattr("pycuda_nn.training.run.time.perf_counter", lambda: float(next(clock)))
    backend = EagerBackend()
    history = nn.train(CONFIG, *parts[:2], backend=backend).history
    assert [report.seconds for report in history] == [1.0] * 5
    assert next(clock) == 7  # the first two epochs are timed from their own start
