"""Train the trials that a search in this process proposes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pycuda_nn.config import TrainConfig
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError
from pycuda_nn.protocols import Backend
from pycuda_nn.spearmint_trials.contracts import AskTell, Proposed
from pycuda_nn.spearmint_trials.together import Together, ValueOf, check_request, is_count
from pycuda_nn.training.facts import DataFacts


def run_trials(
    search: AskTell,
    config: Callable[[Any], TrainConfig],
    train: Dataset,
    valid: Dataset,
    *,
    trials: int,
    batch: int = 8,
    monitor: str = "error",
    value: ValueOf | None = None,
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
        value: Returns what to tell of a training that ended, such as a dict with the values of
            constraints or of several objectives. Default: its best validation ``monitor``.
        folder: Directory for a checkpoint of each pending trial.
        backend: As in :func:`train_many`.

    Raises:
        ConfigError: ``trials``, ``batch`` or ``monitor`` is invalid, or there are no validation
            rows.
    """
    check_request(batch, monitor, valid)
    if not is_count(trials, 0):
        raise ConfigError(f"invalid trials = {trials!r}", "Use a whole number from 0.")
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    path_of = None if folder is None else partial(_path_in, Path(folder))
    waiting, facts = list(search.pending), DataFacts(train, valid)
    while True:
        fresh = min(batch - len(waiting[:batch]), trials - len(search.trials))
        chosen = waiting[:batch] + (search.ask_many(fresh) if fresh > 0 else [])
        waiting = waiting[batch:]
        if not chosen:
            return
        Together(search, monitor, path_of, value).run(chosen, config, facts, backend)


def _path_in(folder: Path, trial: Proposed) -> Path:
    return folder / f"{trial.id}.npz"
