"""Ask and tell: Python code asks the search for trials and tells it their results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from spearmint.errors import InputError
from spearmint.model import Result, Trial, TrialState
from spearmint.search.display import PointTrial
from spearmint.search.opening import OpenSearch
from spearmint.search.proposal import Proposal, has_failed, to_reports, to_told, whole
from spearmint.search.recommended import Recommends
from spearmint.search.rungs import part_of, resumed
from spearmint.search.running import RunningTrials
from spearmint.store.records import Records
from spearmint.trial.languages import to_arrays, to_entries

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="AskTell")

_GRID_SIZE = 20000


def one_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Allow one thread at a time in the methods with this decorator."""

    @functools.wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._opened.busy:
            return method(self, *args, **kwargs)

    return guarded


class AskTell(Recommends):
    """The methods of a search that evaluate no function themselves."""

    _opened: OpenSearch

    def _begin(self) -> None:
        session = self._opened.session
        self._experiment, self._study = session.experiment, session.study
        self._records = Records(session.layout, session.experiment, grid_size=_GRID_SIZE)
        self._together: RunningTrials | None = None

    @one_thread
    def ask(self) -> Proposal:
        """Return a new trial to evaluate. Raises InputError after ``close``.

        In a search with rungs, it can be a paused trial that continues: see ``steps`` and
        ``folder`` of the proposal.
        """
        self._require_open()
        return self._proposal(resumed(self._opened.session) or self._study.ask())

    @one_thread
    def ask_many(self, count: int) -> list[Proposal]:
        """Return ``count`` new trials to evaluate at the same time, for example on as many GPUs.

        A chooser with a model fits it once, and each point takes account of the ones before it, as
        if they were running. This is faster than as many calls of ``ask``. In a search with rungs,
        paused trials that continue are first.

        Raises:
            InputError: ``count`` is below 1, or the search is closed.
        """
        self._require_open()
        if whole("count", count) < 1:
            raise InputError(f"invalid count {count}: expected at least 1")
        paused = iter(partial(resumed, self._opened.session), None)
        trials = list(islice(paused, count))
        trials += self._study.ask_many(count - len(trials))
        return [self._proposal(trial) for trial in trials]

    @one_thread
    def tell(
        self,
        trial: Proposal | int,
        value: float | Mapping[str, float] | None,
        *,
        reason: str = "",
        reports: Mapping[int, float] | None = None,
    ) -> None:
        """Store the result of a trial, given by its proposal or number.

        In a search with rungs, it is the value after the last of the proposal's ``steps``, and the
        trial is paused unless these were the last ones.

        Args:
            trial: The proposal, or its number.
            value: The objective; None or NaN for a failed trial. With constraints or several
                objectives, a dict as a function would return it.
            reason: Why it failed, in one line.
            reports: The objective at several steps, as for :meth:`report_many`.

        Raises:
            InputError: The trial is not pending, or ``value`` is not a number, or lacks one; or the
                proposal is of an earlier part of the trial.
        """
        running = self._pending(trial)
        failed = has_failed(value)
        told = {} if failed else to_told(value, self._experiment)
        if reports:
            running = self._study.report(running, to_reports(reports))
        if failed:
            why = reason or f"the value is {'None' if value is None else 'nan'}"
            self._study.break_(running, Result(value=None, reason=why), tail="")
        else:
            self._store(running, Result(**told, reports=running.reports))
        self._record()

    def _store(self, running: Trial, result: Result) -> None:
        fidelity = self._study.experiment.fidelity
        if fidelity is None or fidelity.is_last(len(running.rungs)):
            self._study.complete(running, result)
            return
        goal = self._study.goal_of(running, result.value or 0.0, self._study.climbers())
        self._study.pause(running, result, goal)

    @one_thread
    def report(self, trial: Proposal | int, step: int, value: float) -> bool:
        """Store the objective at ``step``, and return whether to stop the trial early.

        If it returns True, stop the trial and call ``prune``. It is always False without a pruner,
        and True with a pruner if ``value`` is not finite. Up to 1000 steps of a trial are stored.

        Raises:
            InputError: The trial is not pending, or ``value`` is not a number.
        """
        return self.report_many(trial, {step: value})

    @one_thread
    def report_many(self, trial: Proposal | int, values: Mapping[int, float]) -> bool:
        """Store the objective at several steps, and return whether to stop, as :meth:`report`.

        This is faster than as many calls of ``report``. A pruner sees only the last step.

        Raises:
            InputError: The trial is not pending, or a value is not a number.
        """
        running = self._pending(trial)
        numbers = to_reports(values)
        running = self._study.report(running, numbers)
        if numbers and not math.isfinite(numbers[max(numbers)]):
            return self._study.prunes
        return self._study.prunes and self._study.should_prune(running)

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Store everything that the block tells and reports in one transaction at its end.

        This is faster for many results. If the process is killed in the block, it stores nothing;
        if the block raises, what it told before. Other threads wait, and other processes that write
        to the same SQLite file: keep the block short.

        Example:
            >>> with search.one_transaction():
            ...     for proposal, value in results:
            ...         search.tell(proposal, value)
        """
        with self._opened.busy:
            self._require_open()
            if self._together is not None:
                yield
                return
            self._together = RunningTrials(self._study)
            try:
                with self._study.one_transaction():
                    yield
            finally:
                self._together = None
                self._record()

    @property
    def prunes(self) -> bool:
        """Whether the search has a pruner: without one, ``report`` is always False."""
        return self._study.prunes

    @one_thread
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
    @one_thread
    def best(self) -> Trial | None:
        """The best feasible trial: its ``id``, ``value`` and ``params``; None before the first.

        None with several objectives, see :attr:`front`.
        """
        found = [] if self._experiment.has_front else self._study.best()
        return self._shown(found[0]) if found else None

    @property
    @one_thread
    def front(self) -> list[Trial]:
        """The Pareto front: feasible trials that no other is better than in all objectives.

        It is sorted by the first objective, and empty with one objective.
        """
        return [self._shown(trial) for trial in self._study.front()]

    @property
    @one_thread
    def trials(self) -> list[Trial]:
        """All trials by number; ``params`` of a space has one value for each variable."""
        return [self._shown(trial) for trial in self._study.trials()]

    @property
    @one_thread
    def lessons(self) -> list[str]:
        """What the search learns from ``learn_from``, and what it ignores, in lines."""
        return list(self._study.lessons)

    @property
    @one_thread
    def pending(self) -> list[Proposal]:
        """Proposals without a result, including those of earlier processes."""
        return [self._proposal(trial) for trial in self._study.running()]

    @one_thread
    def close(self) -> None:
        """Unlock the experiment for other processes; stored trials can still be read."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if not self._opened.is_open:
            raise InputError(
                "this Search is closed, and another process can run the experiment",
                "Create a new one: spearmint.Search(...)",
            )

    def _pending(self, trial: Proposal | int) -> Trial:
        self._require_open()
        trial_id = trial.id if isinstance(trial, Proposal | Trial) else whole("trial", trial)
        running = (self._together or self._study).find_running(trial_id)
        if running is None:
            known = [trial.id for trial in self._study.last(TrialState.RUNNING)]
            raise InputError(
                f"trial {trial_id} is not pending; pending trials: {known or 'none'}",
                "Call tell() once for each trial that ask() returned.",
            )
        if isinstance(trial, Proposal) and trial.steps and trial._passed != len(running.rungs):
            raise InputError(
                f"this proposal of trial {trial_id} is of steps {trial.steps[0]} to "
                f"{trial.steps[-1]}, which were told before",
                "Another worker trained them: ask for another trial.",
            )
        return running

    def _shown(self, trial: Trial) -> Trial:
        space = self._opened.space
        if space is None:
            return trial
        fields = {name: getattr(trial, name) for name in Trial.__dataclass_fields__}
        return PointTrial(**{**fields, "params": space.values(trial.params)})

    def _proposal(self, trial: Trial) -> Proposal:
        part = part_of(self._opened.session, trial)
        if self._opened.space is not None:
            return Proposal(trial.id, self._opened.space.values(trial.params), part)
        entries = to_entries(self._experiment.variables, trial.params)
        return Proposal(trial.id, to_arrays(entries), part)

    def _record(self) -> None:
        if self._together is not None:
            return  # once for all
        counts, best = self._study.counts(), self._study.best()
        self._records.update(
            best[0] if best and not self._experiment.has_front else None,
            pending=counts[TrialState.RUNNING],
            complete=counts[TrialState.COMPLETE],
            broken=counts[TrialState.BROKEN],
        )
