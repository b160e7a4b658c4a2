"""``spearmint run``: search, the command's main job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler

from spearmint.choosers import make_chooser, parse_method_args
from spearmint.cli.run_options import RunOptions, run_options
from spearmint.cli.summary import greet, summarise
from spearmint.config import load_experiment, require_wrapper
from spearmint.drivers import Driver, make_driver
from spearmint.errors import SearchStopped
from spearmint.loop import Loop
from spearmint.model import Experiment
from spearmint.progress import PlainWatcher, make_console, make_watcher
from spearmint.pruners import make_pruner
from spearmint.records import Records
from spearmint.session import Session, run_sessions
from spearmint.stopping import stop_on_signals
from spearmint.study_loop import StudyLoop
from spearmint.web import WebStatus


@click.command(short_help="Run the search of a config.pb (the default command).")
@click.argument("config", type=click.Path(path_type=Path), required=False)
@run_options
@click.option("--run-job", type=click.Path(path_type=Path), help="Run one trial folder, here.")
def run(config: Path | None, run_job: Path | None, **options: object) -> None:
    """Search the hyperparameters that CONFIG, a config.pb or its directory, declares.

    The same command goes on where the last one stopped, however it ended. Ctrl-C once stops
    asking for trials and waits for those that run; twice ends them.

    \b
    Examples:
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --pruner=median --patience=20 --max-time=2h experiment/config.pb
    """
    if run_job is not None:
        _run_job(run_job)
    if config is None:
        raise click.UsageError("Missing argument 'CONFIG': a config.pb or its directory.")
    chosen = RunOptions(**options)  # type: ignore[arg-type]
    experiment = chosen.override(load_experiment(config))
    require_wrapper(experiment)
    chosen.limits(experiment)  # what is wrong shows before anything is created
    _tools(experiment, chosen)
    driver = make_driver(chosen.driver, max_concurrent=chosen.max_concurrent)
    with run_sessions(experiment, chosen.storage, driver=driver.name) as sessions:
        for session in sessions:
            session.study.use(*_tools(experiment, chosen))
        _search(sessions, driver, chosen)


def _run_job(folder: Path) -> None:
    """Run one trial in the foreground and exit with the runner's status."""
    folder = folder.parent if folder.is_file() else folder
    argv = [sys.executable, "-P", "-m", "spearmint.runner", str(folder)]
    sys.exit(subprocess.run(argv, check=False).returncode)


def _tools(experiment: Experiment, options: RunOptions) -> tuple[BaseSampler, BasePruner | None]:
    """Return a chooser and a pruner for one search."""
    chooser = make_chooser(
        options.method, parse_method_args(options.method_args), seed=options.grid_seed
    )
    if not experiment.pruner:
        return chooser, None
    return chooser, make_pruner(experiment.pruner, parse_method_args(experiment.pruner_args))


def _search(sessions: Sequence[Session], driver: Driver, options: RunOptions) -> None:
    console = make_console()
    limits, total = (
        options.limits(sessions[0].experiment),
        options.max_finished_jobs * len(sessions),
    )
    greet(console, sessions, options)
    url = sessions[0].study.url
    with (
        WebStatus(options.web_status, options.host, options.port, url, console),
        make_watcher(console, total) as watcher,
        stop_on_signals() as stop,
    ):
        studies = [_study_loop(session, driver, options, watcher) for session in sessions]
        loop = Loop(studies=studies, driver=driver, limits=limits, watcher=watcher, stop=stop)
        figures = loop.run()
    summarise(console, sessions, options, figures)
    finished = sum(progress.finished for progress in figures.values())
    if stop.asking and finished < total:
        raise SearchStopped(
            f"stopped with {finished} of {total} trials finished", "Run the same command to go on."
        )


def _study_loop(
    session: Session, driver: Driver, options: RunOptions, watcher: PlainWatcher
) -> StudyLoop:
    return StudyLoop(
        experiment=session.experiment,
        layout=session.layout,
        study=session.study,
        driver=driver,
        limits=options.study_limits(),
        records=Records(session.layout, session.experiment, grid_size=options.grid_size),
        watcher=watcher,
    )
