"""Run the trials of a search as networks that train at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from pycuda_nn.config import TrainConfig
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError, PycudaNNError, TrainingDiverged
from pycuda_nn.protocols import Backend
from pycuda_nn.training.facts import DataFacts
from pycuda_nn.training.history import EpochReport
from pycuda_nn.training.large_batch import check_rows
from pycuda_nn.training.many import ManyResult, train_on

_STORE_S = 2.0  # between two stores of intermediate values that cannot stop a trial
_MOST_STORED = 8  # of these values of a trial: each takes a millisecond
_BURST_S = 0.02  # networks that end after less than this since the last one are stored together


class Proposed(Protocol):
    """A trial to evaluate."""

    @property
    def id(self) -> int:
        """Number of the trial."""

    @property
    def params(self) -> Any:
        """Its point."""


class AskTell(Protocol):
    """What a search must offer; ``spearmint.Search`` does."""

    @property
    def pending(self) -> list[Any]:
        """Trials without a result."""

    @property
    def trials(self) -> list[Any]:
        """All trials."""

    @property
    def prunes(self) -> bool:
        """Whether an intermediate value can stop a trial."""

    def ask_many(self, count: int) -> list[Any]:
        """Return new trials."""

    def tell(
        self,
        trial: Any,
        value: float | None,
        *,
        reason: str = "",
        reports: Mapping[int, float] | None = None,
    ) -> None:
        """Store a result, and the intermediate values ``reports`` by step."""

    def one_transaction(self) -> AbstractContextManager[None]:
        """Store everything that the block tells and reports at its end."""

    def report(self, trial: Any, step: int, value: float) -> bool:
        """Store an intermediate value; return whether to stop."""

    def report_many(self, trial: Any, values: Mapping[int, float]) -> bool:
        """Store intermediate values by step."""

    def prune(self, trial: Any) -> None:
        """Store that a trial was stopped."""


def run_trials(
    search: AskTell,
    config: Callable[[Any], TrainConfig],
    train: Dataset,
    valid: Dataset,
    *,
    trials: int,
    batch: int = 8,
    monitor: str = "error",
    folder: str | Path | None = None,
    backend: str | Backend = "auto",
) -> None:
    """Ask for ``batch`` trials at once, train their networks together, and tell each result.

    The value of a trial is its best validation ``monitor``. It is told as soon as its network ends.
    A network that diverges, or whose settings are invalid, is a broken trial and does not affect
    the others; with a pruner, each network stops alone. A later call continues pending trials,
    at their last epoch if it has the same ``folder``.

    The values of the epochs are stored at once if the search has a pruner or ``folder`` is given.
    Otherwise up to eight values of a trial are stored every two seconds and at its end.

    Example:
        >>> import tempfile
        >>> import pycuda_nn as nn
        >>> import spearmint
        >>> from pycuda_nn.spearmint_trials import run_trials
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> with tempfile.TemporaryDirectory() as out:
        ...     with spearmint.Search({"lr": (1e-4, 1e-1, "log")}, directory=out) as search:
        ...         config = lambda params: nn.TrainConfig(lr=params["lr"], epochs=2)
        ...         run_trials(search, config, train, valid, trials=4, batch=2)
        ...         print(len(search.trials))
        4

    Args:
        search: A ``spearmint.Search`` that minimizes.
        config: Returns the settings for the ``params`` of a trial.
        train, valid: Parts of one source.
        trials: Number of trials of the search, including earlier ones and broken ones.
        batch: Networks that train at once; the last batch can be smaller.
        monitor: ``error`` or ``loss``.
        folder: Directory for a checkpoint of each pending trial.
        backend: As in :func:`train_many`.

    Raises:
        ConfigError: ``batch`` or ``monitor`` is invalid, or there are no validation rows.
    """
    _check(batch, monitor, valid)
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    waiting, facts = list(search.pending), DataFacts(train, valid)
    while True:
        fresh = min(batch - len(waiting[:batch]), trials - len(search.trials))
        chosen = waiting[:batch] + (search.ask_many(fresh) if fresh > 0 else [])
        waiting = waiting[batch:]
        if not chosen:
            return
        _Together(search, monitor, folder).run(chosen, config, facts, backend)


def _check(batch: int, monitor: str, valid: Dataset) -> None:
    if batch < 1 or monitor not in ("error", "loss"):
        raise ConfigError(
            f"invalid batch = {batch!r} or monitor = {monitor!r}",
            "Use a batch of at least 1, and the monitor error or loss.",
        )
    if not len(valid):
        raise ConfigError("trials need validation data", "Pass validation data.")


class _Together:
    """The trials of one batch."""

    def __init__(self, search: AskTell, monitor: str, folder: str | Path | None) -> None:
        self._search, self._monitor = search, f"valid_{monitor}"
        self._folder = None if folder is None else Path(folder)
        self._trials: list[Proposed] = []
        self._pruned: set[int] = set()
        self._values: dict[int, dict[int, float]] = {}  # not stored yet
        self._ended: list[tuple[int, ManyResult]] = []  # not told yet
        self._at_once = search.prunes or folder is not None
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
                check_rows(made, len(facts.train))
            except PycudaNNError as error:
                self._search.tell(trial, None, reason=_line(error))
                continue
            configs.append(made)
            self._trials.append(trial)
        try:
            train_on(
                facts,
                configs,
                on_epoch=self._report,
                on_end=self._end,
                on_round=self._tell,
                checkpoints=[self._path(trial) for trial in self._trials],
                resume=True,
                backend=backend,
            )
        finally:
            self._tell()

    def _path(self, trial: Proposed) -> Path | None:
        return None if self._folder is None else self._folder / f"{trial.id}.npz"

    def _report(self, number: int, report: EpochReport) -> bool:
        now, value = time.monotonic(), float(getattr(report, self._monitor))
        self._since, self._last = now - self._last, now
        if self._at_once:
            stop = self._search.report(self._trials[number], report.epoch, value)
            if stop:
                self._pruned.add(number)
            return stop
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
            if path := self._path(self._trials[number]):
                path.unlink(missing_ok=True)
        self._last = time.monotonic()

    def _tell_one(self, number: int, result: ManyResult) -> None:
        trial, reports = self._trials[number], self._some(number)
        if isinstance(result, TrainingDiverged):
            self._search.tell(trial, None, reason=_line(result), reports=reports)
        elif number in self._pruned and result.stopped_early:
            self._search.prune(trial)
        else:
            value = min(getattr(report, self._monitor) for report in result.history)
            self._search.tell(trial, float(value), reports=reports)


def _line(error: PycudaNNError) -> str:
    return " ".join(str(error).split())
