"""Run the search of ``spearmint run``. Imports Optuna, unlike :mod:`spearmint.cli.run`."""

from __future__ import annotations

import dataclasses
import errno
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from rich.console import Console

from spearmint.budget import BillMeter, Budget, Ending, started_at
from spearmint.budget.meter import DEFAULT_BILL
from spearmint.choosers import make_chooser, parse_method_args
from spearmint.choosers.pruners import make_pruner
from spearmint.cli.overrides import (
    override,
    override_resources,
    require_batch,
    require_launcher,
    require_needs,
    require_no_rungs,
    require_one_host,
    require_one_objective,
    require_queue,
    require_regions,
    search_limits,
    study_limits,
)
from spearmint.cli.setting_options import given_options
from spearmint.cli.summary import greet, summarise
from spearmint.config.reader import load_experiment
from spearmint.config.wrapper import require_octave, require_syntax, require_wrapper
from spearmint.controller.controller import Controller
from spearmint.controller.events import StudyCounts
from spearmint.controller.orphans import choose_driver
from spearmint.controller.signals import stop_on_signals
from spearmint.controller.study_run import StudyRun
from spearmint.controller.submission import job_request
from spearmint.drivers import Driver, DriverSettings, JobRequest, make_driver
from spearmint.errors import (
    DriverUnreachable,
    NoSearch,
    NotWritable,
    OutputClosed,
    SearchFailed,
    SearchStopped,
    StorageError,
)
from spearmint.generations import turn_over
from spearmint.layout import Layout
from spearmint.model import Experiment
from spearmint.resources import Resources
from spearmint.run_options import RunOptions
from spearmint.store.earlier import earlier_searches, learns_from_regions
from spearmint.store.feasibility import require_feasible
from spearmint.store.owner import read_ownership
from spearmint.store.records import Records
from spearmint.store.session import Session, run_sessions
from spearmint.transfer import Neighbours, for_region
from spearmint.view.dashboard import WebStatus
from spearmint.view.progress import PlainObserver, make_console, make_observer

_RETRY_S = 5.0
_DISK_ERRORS = {
    errno.EACCES, errno.EDQUOT, errno.EIO, errno.ENOENT, errno.ENOSPC, errno.EPERM, errno.EROFS,
    errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip


def run_search(config: Path, options: dict[str, Any]) -> None:
    """Run the search of ``config``, print the job it would submit, or terminate its trials.

    Args:
        config: A config.pb or its directory.
        options: Every option of RunOptions and Resources, by name.

    Raises:
        SpearmintError: The config, the options or the storage are invalid, or the search failed.
    """
    declared = load_experiment(config)
    needed = given_options(Resources, options)
    chosen = RunOptions(**options)
    resources = override_resources(declared.resources, needed)
    experiment = dataclasses.replace(override(declared, chosen), resources=resources)
    require_wrapper(experiment)
    require_batch(experiment)
    if not chosen.cancel:
        require_syntax(experiment)
    require_needs(chosen, experiment)
    require_launcher(experiment)
    require_one_objective(chosen, experiment)
    require_no_rungs(experiment)
    require_regions(experiment)
    if not chosen.cancel:
        require_feasible(experiment)
    _tools(experiment, chosen)
    if chosen.budget is not None and not chosen.cancel:
        BillMeter(chosen.bill or DEFAULT_BILL, datetime.now(UTC))  # raises before anything starts
    if chosen.again and not (chosen.dry_run or chosen.cancel):
        limits = study_limits(chosen)
        note = turn_over(experiment, chosen.storage, limits, then_final=chosen.then_final)
        if note:
            click.echo(note)
    driver = _driver(experiment, chosen)
    if not driver.detaches:
        require_queue(chosen, needed)
        require_one_host(experiment, driver.name)
        if not (chosen.dry_run or chosen.cancel):
            require_octave(experiment)
    preview = driver.preview(_example(experiment))  # raises if the queue cannot run the job
    if chosen.dry_run:
        click.echo(preview)
    elif chosen.cancel:
        _cancel(experiment, driver, chosen)
    else:
        follows_capacity = chosen.max_concurrent is None
        if follows_capacity:
            chosen = dataclasses.replace(chosen, max_concurrent=driver.capacity())
        _search(experiment, driver, chosen, follows_capacity=follows_capacity)


def _driver(experiment: Experiment, options: RunOptions) -> Driver:
    layout = Layout(experiment.directory)
    runs_python = experiment.language == "PYTHON" and not (options.dry_run or options.cancel)
    imports_early = runs_python and not experiment.launcher  # torchrun starts new processes
    settings = DriverSettings(
        directory=layout.root,
        max_concurrent=options.max_concurrent or 1,
        queues_ahead=options.queue_ahead > 0,
        polling_s=options.polling_time,
        resources=experiment.resources,
        module=experiment.name if imports_early else "",
    )
    return make_driver(choose_driver(layout, options.driver), settings)


def _example(experiment: Experiment) -> JobRequest:
    """Return the job request of the first trial."""
    first = experiment.searches()[0]
    return job_request(first, Layout(experiment.directory, first.region), 1)


def _cancel(experiment: Experiment, driver: Driver, options: RunOptions) -> None:
    """Terminate the jobs of an earlier run.

    Raises:
        NoSearch: The search was never run.
    """
    if read_ownership(Layout(experiment.directory)) is None:
        raise NoSearch(f"no search in {experiment.directory}", "There is nothing to cancel.")
    with run_sessions(experiment, options.storage, driver=driver.name) as sessions:
        observer = PlainObserver(make_console())
        studies = [_study_run(session, driver, options, observer) for session in sessions]
        for study in studies:
            study.resume()
        cancelled = sum(study.n_running for study in studies)
        for study in studies:
            study.end_running()
        driver.forget_others([])
        for text in driver.notices():
            observer.note(text)
    if cancelled:
        click.echo(f"Terminated {cancelled} trials. The next run restarts them.")
    else:
        click.echo("No trial was running.")


def _tools(experiment: Experiment, options: RunOptions) -> tuple[BaseSampler, BasePruner | None]:
    """Return the chooser and the pruner of one search."""
    chooser = make_chooser(
        options.method, parse_method_args(options.method_args), seed=options.grid_seed
    )
    if not experiment.pruner:
        return chooser, None
    return chooser, make_pruner(experiment.pruner, parse_method_args(experiment.pruner_args))


def _search(
    experiment: Experiment, driver: Driver, options: RunOptions, *, follows_capacity: bool
) -> None:
    """Run the search. If jobs run without this command, reopen everything after disk failures."""
    console = make_console()
    has_begun, reported = False, ""
    earlier = earlier_searches(experiment.learn_from, experiment.directory)
    with_regions = learns_from_regions(experiment.learn_from)
    while True:
        try:
            with run_sessions(experiment, options.storage, driver=driver.name) as sessions:
                for session in sessions:
                    session.study.use(*_tools(experiment, options))
                    region = session.experiment.region
                    session.study.learn(for_region(earlier, region), with_regions=with_regions)
                if not has_begun:
                    greet(console, sessions, options, driver.name)
                has_begun = True
                return _search_once(console, sessions, driver, options, follows_capacity)
        except (StorageError, NotWritable, DriverUnreachable, OSError) as error:
            can_retry = has_begun and driver.detaches
            if not can_retry or not _is_passing(error, seen_before=bool(reported)):
                raise
            if str(error) != reported:
                reported = str(error)
                console.print(f"{reported}\nRetrying. Trials continue to run.", markup=False)
            time.sleep(_RETRY_S)


def _is_passing(error: Exception, *, seen_before: bool) -> bool:
    """Return whether ``error`` can be temporary: of a disk, or of a queue that answered before."""
    if isinstance(error, DriverUnreachable):
        return seen_before
    return not isinstance(error, OSError) or error.errno in _DISK_ERRORS


def _search_once(
    console: Console,
    sessions: Sequence[Session],
    driver: Driver,
    options: RunOptions,
    follows_capacity: bool,
) -> None:
    total = options.max_finished_jobs * len(sessions)
    with (
        WebStatus(
            options.web_status,
            options.host,
            options.port,
            config=sessions[0].experiment.path,
            url=sessions[0].study.url,
            console=console,
        ),
        make_observer(console, total) as observer,
        stop_on_signals() as stop,
    ):
        studies = [_study_run(session, driver, options, observer) for session in sessions]
        limits = search_limits(options, sessions[0].experiment)
        limits = dataclasses.replace(limits, follows_capacity=follows_capacity)
        budget = _budget(sessions[0].layout, options)
        ending = _ending(budget, options)
        if ending is not None:
            ending.warn(observer.note)
        controller = Controller(
            studies=studies,
            driver=driver,
            limits=limits,
            observer=observer,
            stop=stop,
            budget=budget,
            neighbours=_neighbours(sessions[0].experiment),
        )
        try:
            figures = controller.run()
        except BrokenPipeError:
            raise _output_closed(controller) from None
    summarise(console, sessions, options, figures)
    if budget is not None:
        console.print(budget.summary(), markup=False)
    left = _left(figures.values(), total, waits=any(study.resumes_paused() for study in studies))
    if stop.requested and left:
        raise SearchStopped(
            f"stopped with {left}", "Rerun the command to continue.", number=stop.number
        )
    if failures := controller.finals.failures:
        raise SearchFailed(
            f"{len(failures)} final trainings failed: {'; '.join(failures)}",
            "Fix the cause and rerun the command; it trains only these.",
        )
    if ending is not None and not stop.requested:
        ending.run(lambda text: console.print(text, markup=False, soft_wrap=True))


def _neighbours(experiment: Experiment) -> Neighbours | None:
    """Return what regions that learn from each other know; None if they do not."""
    with_regions = learns_from_regions(experiment.learn_from)
    return Neighbours() if with_regions else None


def _left(figures: Iterable[StudyCounts], total: int, *, waits: bool) -> str:
    """Return how far a search of ``total`` trials is; empty if nothing is left to do.

    Args:
        figures: Counts of each region.
        total: Number of all its trials.
        waits: Whether a paused trial would be resumed.
    """
    known = list(figures)
    finished, paused = (sum(n) for n in zip(*((c.finished, c.paused) for c in known), strict=True))
    if finished >= total and not waits:
        return ""
    text = f"{finished - paused} of {total} trials finished"
    return f"{text} and {paused} paused" if paused else text


def _budget(layout: Layout, options: RunOptions) -> Budget | None:
    """Return the budget of the search, which an earlier run has possibly begun."""
    if options.budget is None:
        return None
    meter = BillMeter(options.bill or DEFAULT_BILL, started_at(layout.budget))
    return Budget(options.budget, meter, polling_s=options.polling_time)


def _ending(budget: Budget | None, options: RunOptions) -> Ending | None:
    if budget is None or options.then is None or not isinstance(budget.meter, BillMeter):
        return None
    return Ending(options.then, budget.meter.bill)


def _output_closed(controller: Controller) -> OutputClosed:
    """Terminate the local trials of a search that nobody watches, and return its error."""
    if controller.driver.detaches:
        return OutputClosed("nobody reads the output", "Jobs continue; rerun to follow them.")
    controller.cancel()
    return OutputClosed(
        "nobody reads the output; the running trials were terminated",
        "Rerun the command to continue. To keep its output, redirect it to a file.",
    )


def _study_run(
    session: Session, driver: Driver, options: RunOptions, observer: PlainObserver
) -> StudyRun:
    return StudyRun(
        experiment=session.experiment,
        layout=session.layout,
        study=session.study,
        driver=driver,
        limits=study_limits(options),
        records=Records(session.layout, session.experiment, grid_size=options.grid_size),
        observer=observer,
        retries_broken=options.retry_broken and not options.cancel,
    )
