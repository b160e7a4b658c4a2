"""Train the networks of several trials at once, and tell each result as soon as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from pycuda_nn.config import TrainConfig, require_config
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError, PycudaNNError, TrainingDiverged
from pycuda_nn.protocols import Backend
from pycuda_nn.spearmint_trials.contracts import Proposed, Told
from pycuda_nn.training.facts import DataFacts
from pycuda_nn.training.history import EpochReport
from pycuda_nn.training.large_batch import check_rows
from pycuda_nn.training.loop import TrainResult
from pycuda_nn.training.many import ManyResult, train_on

ValueOf = Callable[[TrainResult], float | Mapping[str, float]]

_STORE_S = 2.0  # between two stores of intermediate values that cannot stop a trial
_MOST_STORED = 8  # of these values of a trial: each takes a millisecond
_BURST_S = 0.02  # networks that end after less than this since the last one are stored together


def check_request(batch: int, monitor: str, valid: Dataset) -> None:
    """Raise ConfigError if trials cannot be trained so."""
    if not is_count(batch, 1) or monitor not in ("error", "loss"):
        raise ConfigError(
            f"invalid batch = {batch!r} or monitor = {monitor!r}",
            "Use a batch of at least 1, and the monitor error or loss.",
        )
    if not len(valid):
        raise ConfigError("trials need validation data", "Pass validation data.")


def is_count(number: object, least: int) -> bool:
    """Return whether ``number`` is a whole number from ``least``."""
    if isinstance(number, bool) or not isinstance(number, Integral):
        return False
    return int(number) >= least


class Together:
    """The trials of one batch."""

    def __init__(
        self,
        search: Told,
        monitor: str,
        path_of: Callable[[Any], Path | None] | None,
        value: ValueOf | None,
    ) -> None:
        self._search, self._monitor = search, f"valid_{monitor}"
        self._path_of = path_of or (lambda trial: None)
        self._value = value or self._best
        self._last_epochs: list[int] = []  # after which trials stop
        self._kept: set[int] = set()  # whose training continues later, at the checkpoint
        self._trials: list[Proposed] = []
        self._pruned: set[int] = set()
        self._values: dict[int, dict[int, float]] = {}  # not stored yet
        self._ended: list[tuple[int, ManyResult]] = []  # not told yet
        self._at_once = search.prunes or path_of is not None
        self._stored = self._last = time.monotonic()
        self._since = 0.0  # between the last two reports

    def run(
        self,
        chosen: list[Any],
        config: Callable[[Any], TrainConfig],
        facts: DataFacts,
        backend: str | Backend,
    ) -> None:
        """Train and tell ``chosen``."""
        configs: list[TrainConfig] = []
        for trial in chosen:
            try:
                made = config(trial.params)
                require_config(made)
                check_rows(made, len(facts.train))
            except PycudaNNError as error:
                self._search.tell(trial, None, reason=_line(error))
                continue
            steps = getattr(trial, "steps", None)
            last = steps(made.epochs).stop - 1 if steps else made.epochs
            if last < made.epochs:
                self._kept.add(len(configs))
            configs.append(made)
            self._trials.append(trial)
            self._last_epochs.append(last)
        try:
            train_on(
                facts,
                configs,
                on_epoch=self._report,
                on_end=self._end,
                on_round=self._tell,
                checkpoints=[self._path_of(trial) for trial in self._trials],
                resume=True,
                backend=backend,
            )
        finally:
            self._tell()

    def _report(self, number: int, report: EpochReport) -> bool:
        now, value = time.monotonic(), float(getattr(report, self._monitor))
        self._since, self._last = now - self._last, now
        if self._at_once:
            stop = self._search.report(self._trials[number], report.epoch, value)
            if stop:
                self._pruned.add(number)
            return stop or report.epoch >= self._last_epochs[number]
        self._values.setdefault(number, {})[report.epoch] = value
        if now > self._stored + _STORE_S:
            with self._search.one_transaction():
                for waiting in list(self._values):
                    self._search.report_many(self._trials[waiting], self._some(waiting))
            self._stored = self._last = time.monotonic()
        return False

    def _some(self, number: int) -> dict[int, float]:
        """Return some of the values of a trial that are not stored yet, the last one with them."""
        values = self._values.pop(number, {})
        steps = sorted(values, reverse=True)[:: -(-len(values) // _MOST_STORED) or 1]
        return {step: values[step] for step in steps}

    def _end(self, number: int, result: ManyResult) -> None:
        """Tell the result at once, or with those of other networks that end now.

        A GPU returns all networks of an epoch at once. On a CPU, one follows the other.
        """
        self._ended.append((number, result))
        if self._since > _BURST_S:
            self._tell()

    def _tell(self) -> None:
        """Tell the results that are not told yet, in one transaction.

        After an error or Ctrl-C in one of them, the next call tells the others.
        """
        if not self._ended:
            return
        told: list[int] = []
        with self._search.one_transaction():
            while self._ended:
                number, result = self._ended.pop(0)
                self._tell_one(number, result)
                told.append(number)
        for number in told:
            path = self._path_of(self._trials[number])
            if path and number not in self._kept:
                path.unlink(missing_ok=True)
        self._last = time.monotonic()

    def _tell_one(self, number: int, result: ManyResult) -> None:
        trial, reports = self._trials[number], self._some(number)
        if isinstance(result, TrainingDiverged):
            self._search.tell(trial, None, reason=_line(result), reports=reports)
        elif number in self._pruned and result.stopped_early:
            self._search.prune(trial)
        else:
            self._search.tell(trial, self._value(result), reports=reports)

    def _best(self, result: TrainResult) -> float:
        return float(min(getattr(report, self._monitor) for report in result.history))


def _line(error: PycudaNNError) -> str:
    return " ".join(str(error).split())
