"""Train the trials of one job, which ``main_batch`` of a search receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pycuda_nn.config import TrainConfig
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.protocols import Backend
from pycuda_nn.spearmint_trials.contracts import JobTrial
from pycuda_nn.spearmint_trials.together import Together, ValueOf, check_request
from pycuda_nn.training.facts import DataFacts

_MOST_EPOCHS = 2**31


def train_trials(
    trials: Sequence[JobTrial],
    config: Callable[[Any], TrainConfig],
    train: Dataset,
    valid: Dataset,
    *,
    monitor: str = "error",
    value: ValueOf | None = None,
    resume: bool = False,
    backend: str | Backend = "auto",
) -> None:
    """Train the networks of ``main_batch(trials)`` together, and tell each result when it ends.

    The value of a trial is its best validation ``monitor``. A network that diverges, or whose
    settings are invalid, is a broken trial and does not affect the others. Each network stops alone
    if its trial is pruned or stopped. With a block ``fidelity``, whose steps are epochs, it ends at
    its rung, and continues there when the trial is resumed.

    Example:
        >>> import pycuda_nn as nn
        >>> from pycuda_nn.spearmint_trials import train_trials
        >>> def config(params):
        ...     return nn.TrainConfig(lr=params["lr"][0], epochs=20)
        >>> def main_batch(trials):
        ...     train, valid, test = nn.split(nn.load_data("digits"))
        ...     train_trials(trials, config, train, valid)

    Args:
        trials: Those that ``main_batch`` receives.
        config: Returns the settings for the ``params`` of a trial, as ``main`` receives them.
        train, valid: Parts of one source.
        monitor: ``error`` or ``loss``.
        value: Returns what to tell of a training that ended, such as a dict with the values of
            constraints or of several objectives. Default: its best validation ``monitor``.
        resume: Store a checkpoint of each network after each epoch, and continue there if the job
            was killed. A trial that stops at a rung has one in any case.
        backend: As in :func:`train_many`.

    Raises:
        ConfigError: ``monitor`` is invalid, or there are no validation rows.
    """
    check_request(1, monitor, valid)

    def path_of(trial: JobTrial) -> Path | None:
        return trial.files / "network.npz" if resume or _stops_at_rungs(trial) else None

    facts = DataFacts(train, valid)
    Together(_Job(), monitor, path_of, value).run(list(trials), config, facts, backend)


def _stops_at_rungs(trial: JobTrial) -> bool:
    return trial.steps(_MOST_EPOCHS).stop <= _MOST_EPOCHS


class _Job:
    """The trials of one job, as a search that tells each to its trial."""

    prunes = True

    def one_transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def report(self, trial: JobTrial, step: int, value: float) -> bool:
        return trial.report(step, value)

    def report_many(self, trial: JobTrial, values: Mapping[int, float]) -> bool:
        for step, value in values.items():
            trial.report(step, value)
        return trial.has_ended

    def tell(
        self,
        trial: JobTrial,
        value: float | Mapping[str, float] | None,
        *,
        reason: str = "",
        reports: Mapping[int, float] | None = None,
    ) -> None:
        if value is None:
            trial.fail(reason)
        else:
            trial.tell(value)

    def prune(self, trial: JobTrial) -> None:
        """Do nothing: the search has stored it."""
