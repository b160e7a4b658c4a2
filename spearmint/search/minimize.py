"""Run the trials of a function in processes of this machine."""

from __future__ import annotations

import dataclasses
import math
import numbers
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from spearmint.controller.controller import Controller
from spearmint.controller.events import SearchObserver
from spearmint.controller.limits import SearchLimits, StudyLimits
from spearmint.controller.signals import StopRequest, stop_on_signals
from spearmint.controller.study_run import StudyRun
from spearmint.drivers import Driver, DriverSettings, make_driver
from spearmint.drivers.local import usable_cores
from spearmint.errors import InputError, SearchStopped
from spearmint.fidelity import next_to_resume
from spearmint.model import TrialState
from spearmint.run_options import RunOptions
from spearmint.store.records import Records
from spearmint.store.session import Session
from spearmint.tasks.keywords import values_of
from spearmint.view.progress import PlainObserver, make_console, make_observer

LIMITS = (
    "trial_timeout", "max_time", "max_trial_time", "patience", "target", "max_broken",
    "max_retries",
)  # fmt: skip
"""The settings of ``spearmint run`` that ``minimize`` has, too."""
_DURATIONS = ("trial_timeout", "max_time", "max_trial_time")
_ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.PAUSED)
_COUNTS = ("patience", "max_broken", "max_retries")


class _Silent(PlainObserver):
    """Prints nothing."""

    def note(self, text: str) -> None:
        """Ignore the message."""


def check_limits(
    trials: int, n_jobs: int, batch: int, given: Mapping[str, Any]
) -> tuple[int, RunOptions]:
    """Return the number of processes and the settings of a search.

    Raises:
        InputError: A name is unknown, or a value is invalid.
    """
    _check_count("trials", trials, 1)
    if n_jobs != -1:
        _check_count("n_jobs", n_jobs, 1, " or -1, for all cores")
    _check_count("batch", batch, 1)
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or (name in _DURATIONS and value <= 0):
                raise InputError(f"invalid argument {name}: {value!r}", "Write a number.")
            if name in _COUNTS and not isinstance(value, numbers.Integral):
                raise InputError(f"invalid argument {name}: {value!r}", "Write a whole number.")
    values = values_of(RunOptions, given, what="argument", names=LIMITS)
    if values.get("max_broken", 0) is None:  # no limit
        values["max_broken"] = sys.maxsize
    options = RunOptions(**{"max_finished_jobs": trials, **values})
    return usable_cores() if n_jobs == -1 else n_jobs, options


def _check_count(name: str, value: object, least: int, more: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InputError(
            f"invalid argument {name}: {value!r}", f"Write a whole number from {least}{more}."
        )


def run_trials(
    session: Session, n_jobs: int, options: RunOptions, *, batch: int, progress: bool
) -> None:
    """Run trials until ``options`` stop them; the experiment's module calls the function.

    Args:
        session: The search.
        n_jobs: Jobs at the same time.
        options: Limits of the search.
        batch: Most trials of a job.
        progress: Whether to print a line for each trial.

    Raises:
        KeyboardInterrupt: Ctrl-C stopped the search before it was complete.
        SearchStopped: SIGTERM stopped it.
        SearchFailed: Too many trials failed in a row.
    """
    study = session.study
    retries = options.max_retries
    study.experiment = dataclasses.replace(
        session.experiment,
        batch=batch,
        trial_timeout_s=options.trial_timeout,
        max_retries=session.experiment.max_retries if retries is None else retries,
    )
    total = options.max_finished_jobs
    settings = DriverSettings(directory=session.layout.root, max_concurrent=n_jobs)
    driver = make_driver("local", settings)
    console = make_console(stderr=True)
    in_main = threading.current_thread() is threading.main_thread()
    signals = stop_on_signals() if in_main else nullcontext(StopRequest())
    with (
        make_observer(console, total) if progress else _Silent(console) as observer,
        signals as stop,
    ):
        run = _run_of(session, driver, options, observer)
        for lesson in study.lessons:
            observer.note(lesson)
        limits = SearchLimits(
            concurrent=n_jobs, time_s=options.max_time, trial_time_s=options.max_trial_time
        )
        controller = Controller(
            studies=[run], driver=driver, limits=limits, observer=observer, stop=stop
        )
        if _is_complete(run, total):
            observer.note(f"All {total} trials are already finished. To run more, raise trials.")
            return
        try:
            (counts,) = controller.run().values()
        finally:
            study.expect(None)  # later trials are asked for one by one
        is_complete = _is_complete(run, total)
    if stop.requested and not is_complete:
        raise _stopped(stop, counts.finished, total)


def _run_of(
    session: Session, driver: Driver, options: RunOptions, observer: SearchObserver
) -> StudyRun:
    study = session.study
    return StudyRun(
        experiment=study.experiment,
        layout=session.layout,
        study=study,
        driver=driver,
        limits=StudyLimits(
            finished=options.max_finished_jobs,
            broken=options.max_broken,
            patience=options.patience,
            target=options.target,
        ),
        records=Records(session.layout, study.experiment, grid_size=options.grid_size),
        observer=observer,
    )


def _stopped(stop: StopRequest, finished: int, total: int) -> BaseException:
    if stop.number == signal.SIGINT:
        return KeyboardInterrupt()
    return SearchStopped(
        f"stopped with {finished} of {total} trials finished",
        "Rerun the script to continue.",
        number=stop.number,
    )


def _is_complete(run: StudyRun, total: int) -> bool:
    """Return whether earlier calls finished all trials."""
    study, fidelity = run.study, run.study.experiment.fidelity
    if fidelity is not None and next_to_resume(study.climbers(), fidelity) is not None:
        return False
    counts = study.counts()
    return sum(counts[state] for state in _ENDED) >= total and not counts[TrialState.RUNNING]
