"""``spearmint run``: search, the command's main job."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from spearmint.choosers import make_chooser, parse_method_args
from spearmint.cli.options import storage_option
from spearmint.config import load_experiment, require_wrapper
from spearmint.drivers import Driver, make_driver
from spearmint.duration import Duration
from spearmint.errors import SearchStopped
from spearmint.loop import Limits, Loop
from spearmint.loop import Progress as Figures
from spearmint.progress import make_console, make_watcher
from spearmint.records import Records
from spearmint.session import Session, run_session
from spearmint.stopping import stop_on_signals
from spearmint.study import ranking
from spearmint.tables import broken_lines, trial_table
from spearmint.web import WebStatus

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line."""

    storage: str | None
    driver: str
    method: str
    method_args: str
    max_concurrent: int
    max_finished_jobs: int
    max_broken: int
    max_retries: int | None
    trial_timeout: float | None
    grid_size: int
    grid_seed: int
    polling_time: float
    web_status: bool
    host: str
    port: int
    verbose: bool


@click.command(short_help="Run the search of a config.pb (the default command).")
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option("--driver", default="local", show_default=True, help="Where trials run.")
@click.option(
    "--method",
    default="GPEIOptChooser",
    show_default=True,
    help="A chooser of ours, or a sampler of Optuna by name, in any case.",
)
@click.option("--method-args", default="", metavar="K=V,...", help="Arguments of the chooser.")
@click.option(
    "-n",
    "--max-concurrent",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Trials that run at once.",
)
@click.option(
    "--max-finished-jobs",
    type=click.IntRange(1),
    default=10000,
    show_default=True,
    help="Stop after so many complete trials, earlier runs included.",
)
@click.option(
    "--max-broken",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Give up when the first N trials all break, or 10 N in a row later.",
)
@click.option(
    "--max-retries",
    type=click.IntRange(0),
    help="Run a trial again whose job vanished or crashed; default: config.pb's max_retries, or 1.",
)
@click.option(
    "--trial-timeout", type=Duration(), help="End a trial after 90, 15m or 2h; it is broken then."
)
@click.option(
    "--grid-size",
    type=click.IntRange(1),
    default=20000,
    show_default=True,
    help="Candidates counted in trace.csv; kept for the original's scripts.",
)
@click.option(
    "--grid-seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the chooser."
)
@click.option(
    "--polling-time",
    type=Duration(),
    default="3",
    show_default=True,
    help="Seconds between polls of the driver; the local driver notices ends at once.",
)
@storage_option
@click.option("--run-job", type=click.Path(path_type=Path), help="Run one trial folder, here.")
@click.option("-w", "--web-status", is_flag=True, help="Serve optuna-dashboard meanwhile.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address for -w.")
@click.option("--port", default=0, show_default=True, help="Port for -w; 0 is a free one.")
@click.option("-v", "--verbose", is_flag=True, help="Show the output of broken trials at the end.")
def run(config: Path | None, run_job: Path | None, **options: object) -> None:
    """Search the hyperparameters that CONFIG, a config.pb or its directory, declares.

    The same command goes on where the last one stopped, however it ended. Ctrl-C once stops
    asking for trials and waits for those that run; twice ends them.

    \b
    Examples:
      spearmint --max-concurrent=2 --max-finished-jobs=40 examples/branin/config.pb
      spearmint --method=RandomChooser --trial-timeout=10m experiment/config.pb
    """
    if run_job is not None:
        _run_job(run_job)
    if config is None:
        raise click.UsageError("Missing argument 'CONFIG': a config.pb or its directory.")
    chosen = Options(**options)  # type: ignore[arg-type]
    require_wrapper(load_experiment(config))
    args = parse_method_args(chosen.method_args)
    chooser = make_chooser(chosen.method, args, seed=chosen.grid_seed)
    driver = make_driver(chosen.driver, max_concurrent=chosen.max_concurrent)
    with run_session(config, chosen.storage, driver=driver.name) as session:
        session.study.use(chooser)
        _search(_overridden(session, chosen), driver, chosen)


def _run_job(folder: Path) -> None:
    """Run one trial in the foreground and exit with the runner's status."""
    folder = folder.parent if folder.is_file() else folder
    argv = [sys.executable, "-P", "-m", "spearmint.runner", str(folder)]
    sys.exit(subprocess.run(argv, check=False).returncode)


def _overridden(session: Session, options: Options) -> Session:
    """Return the session with the command line's limits in place of config.pb's."""
    experiment = session.experiment
    if options.max_retries is not None:
        experiment = dataclasses.replace(experiment, max_retries=options.max_retries)
    if options.trial_timeout is not None:
        experiment = dataclasses.replace(experiment, trial_timeout_s=options.trial_timeout)
    return dataclasses.replace(session, experiment=experiment)


def _search(session: Session, driver: Driver, options: Options) -> None:
    console = make_console()
    limits = Limits(
        concurrent=options.max_concurrent,
        finished=options.max_finished_jobs,
        broken=options.max_broken,
        polling_s=options.polling_time,
    )
    _greet(console, session, options)
    with (
        WebStatus(options.web_status, options.host, options.port, session, console),
        make_watcher(console, limits.finished) as watcher,
        stop_on_signals() as stop,
    ):
        loop = Loop(
            experiment=session.experiment,
            layout=session.layout,
            study=session.study,
            driver=driver,
            limits=limits,
            records=Records(session.layout, session.experiment, grid_size=options.grid_size),
            watcher=watcher,
            stop=stop,
        )
        figures = loop.run()
    _summarise(console, session, options, figures)
    if stop.asking and figures.complete < limits.finished:
        raise SearchStopped(
            f"stopped with {figures.complete} of {limits.finished} trials complete",
            "Run the same command to go on.",
        )


def _greet(console: Console, session: Session, options: Options) -> None:
    experiment = session.experiment
    console.print(
        f"{experiment.name}: {sum(variable.size for variable in experiment.variables)} dimensions, "
        f"{options.method} proposes, driver {options.driver} runs {options.max_concurrent} at once",
        markup=False,
        soft_wrap=True,
    )


def _summarise(console: Console, session: Session, options: Options, figures: Figures) -> None:
    experiment, trials = session.experiment, session.study.trials()
    best = ranking(trials, maximize=experiment.maximize)[:_SHOWN]
    if best:
        console.print(f"\nBest of {figures.complete} complete trials ({figures.broken} broken)")
        console.print(trial_table(best, experiment.variables))
    if options.verbose:
        for line in broken_lines(trials):
            console.print(line, markup=False, soft_wrap=True)
    elif figures.broken:
        console.print(
            f"Why trials broke: spearmint status {session.layout.root}",
            markup=False,
            soft_wrap=True,
        )
