"""Ask and tell: Python code asks the search for trials and tells it their results."""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from spearmint.choosers import make_chooser, parse_method_args
from spearmint.choosers.pruners import make_pruner
from spearmint.config.reader import load_experiment
from spearmint.errors import InputError
from spearmint.model import Result, Trial, TrialState, best_trial
from spearmint.store.records import Records
from spearmint.store.session import in_region, run_sessions
from spearmint.trial.languages import BadResult, to_arrays, to_entries, to_float

P = ParamSpec("P")
R = TypeVar("R")

_GRID_SIZE = 20000


def _one_thread(
    method: Callable[Concatenate[Search, P], R],
) -> Callable[Concatenate[Search, P], R]:
    """Allow one thread at a time in the methods with this decorator."""

    @functools.wraps(method)
    def guarded(self: Search, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return guarded


class Proposal:
    """A trial to evaluate.

    Attributes:
        id: Number of the trial, from 1; ``tell`` accepts it as well.
        params: Values as ``main`` would receive them: arrays of length ``size`` for FLOAT and INT,
            a list of str for ENUM.
    """

    def __init__(self, trial_id: int, params: Mapping[str, Any]) -> None:
        self.id = trial_id
        self.params = params

    def __repr__(self) -> str:
        return f"Proposal(id={self.id}, params={dict(self.params)!r})"


class Search:
    """The search of a config.pb, locked for this process until ``close``.

    Several proposals can be pending at the same time. Proposals and results are stored immediately
    next to config.pb, so that another process can continue later: ``pending`` lists the proposals
    without a result. The methods are thread-safe; only one thread runs at a time.

    Example:
        >>> with spearmint.Search("config.pb") as search:
        ...     for _ in range(20):
        ...         trial = search.ask()
        ...         search.tell(trial, branin(trial.params["X"]))
        ...     print(search.best)

    Raises:
        ConfigError: config.pb is invalid.
        AlreadyRunning: The command or another Search runs the experiment.
    """

    def __init__(
        self,
        config: str | Path,
        *,
        method: str = "GPEIOptChooser",
        method_args: str | Mapping[str, object] = "",
        seed: int = 1,
        storage: str | None = None,
        region: str | None = None,
        pruner: str = "",
        pruner_args: str | Mapping[str, object] = "",
    ) -> None:
        self._lock = threading.RLock()
        chooser = make_chooser(method, _as_text(method_args), seed=seed)
        with ExitStack() as stack:
            experiment = in_region(load_experiment(Path(config)), region)
            name, args = pruner or experiment.pruner, pruner_args or experiment.pruner_args
            chosen = make_pruner(name, _as_text(args)) if name else None
            (session,) = stack.enter_context(run_sessions(experiment, storage))
            self._stack = stack.pop_all()
        self._is_open = True
        self._experiment = session.experiment
        self._study = session.study
        self._study.use(chooser, chosen)
        self._records = Records(session.layout, session.experiment, grid_size=_GRID_SIZE)

    @_one_thread
    def ask(self) -> Proposal:
        """Return a new trial to evaluate. Raises InputError after ``close``."""
        self._require_open()
        return self._proposal(self._study.ask())

    @_one_thread
    def tell(self, trial: Proposal | int, value: float | None, *, reason: str = "") -> None:
        """Store the result of a trial, given by its proposal or number.

        Args:
            trial: The proposal, or its number.
            value: The objective; None or NaN for a failed trial.
            reason: Why it failed, in one line.

        Raises:
            InputError: The trial is not pending, or ``value`` is not a number.
        """
        running = self._pending(trial)
        number = math.nan if value is None else _checked(value)
        if math.isnan(number):
            why = reason or f"the value is {'None' if value is None else 'nan'}"
            self._study.break_(running, Result(value=None, reason=why), tail="")
        else:
            done = Result(value=number, reports=running.reports)
            self._study.complete(running, done)
        self._record()

    @_one_thread
    def report(self, trial: Proposal | int, step: int, value: float) -> bool:
        """Store the objective at ``step``, and return whether to stop the trial early.

        If it returns True, stop the trial and call ``prune``. It is always False without a pruner,
        and True with a pruner if ``value`` is not finite. Up to 1000 steps of a trial are stored.

        Raises:
            InputError: The trial is not pending, or ``value`` is not a number.
        """
        running = self._pending(trial)
        number = _checked(value)
        running = self._study.report(running, {int(step): number})
        if not math.isfinite(number):
            return self._study.prunes
        return self._study.prunes and self._study.should_prune(running)

    @_one_thread
    def prune(self, trial: Proposal | int) -> None:
        """Store that a trial was stopped early. This is not a failure.

        The chooser estimates its final value from its last report and the finished trials. If the
        last report is missing or not finite, the estimate is the worst value.

        Raises:
            InputError: The trial is not pending.
        """
        self._study.prune(self._pending(trial))
        self._record()

    @property
    @_one_thread
    def best(self) -> Trial | None:
        """The best complete trial: its ``id``, ``value`` and ``params``; None before the first."""
        return best_trial(self._study.trials(), maximize=self._experiment.maximize)

    @property
    @_one_thread
    def trials(self) -> list[Trial]:
        """All trials by number."""
        return self._study.trials()

    @property
    @_one_thread
    def pending(self) -> list[Proposal]:
        """Proposals without a result, including those of earlier processes."""
        return [self._proposal(trial) for trial in self._study.running()]

    @_one_thread
    def close(self) -> None:
        """Unlock the experiment for other processes; stored trials can still be read."""
        self._is_open = False
        self._stack.close()

    def __enter__(self) -> Search:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if not self._is_open:
            raise InputError(
                "this Search is closed, and another process can run the experiment",
                "Create a new one: spearmint.Search(...)",
            )

    def _pending(self, trial: Proposal | int) -> Trial:
        self._require_open()
        trial_id = trial.id if isinstance(trial, Proposal | Trial) else operator.index(trial)
        known = {running.id: running for running in self._study.running()}
        if trial_id not in known:
            raise InputError(
                f"trial {trial_id} is not pending; pending trials: {sorted(known) or 'none'}",
                "Call tell() once for each trial that ask() returned.",
            )
        return known[trial_id]

    def _proposal(self, trial: Trial) -> Proposal:
        entries = to_entries(self._experiment.variables, trial.params)
        return Proposal(trial.id, to_arrays(entries))

    def _record(self) -> None:
        trials = self._study.trials()
        states = [trial.state for trial in trials]
        self._records.update(
            best_trial(trials, maximize=self._experiment.maximize),
            pending=states.count(TrialState.RUNNING),
            complete=states.count(TrialState.COMPLETE),
            broken=states.count(TrialState.BROKEN),
        )


def _as_text(args: str | Mapping[str, object]) -> dict[str, str]:
    if isinstance(args, str):
        return parse_method_args(args)
    return {name: str(value) for name, value in args.items()}


def _checked(value: object) -> float:
    """Return one number, which can be NaN. Raises InputError for anything else."""
    try:
        return to_float(value)
    except BadResult:
        raise InputError(
            f"invalid value {value!r}: expected one number", "Tell None for a failed trial."
        ) from None
