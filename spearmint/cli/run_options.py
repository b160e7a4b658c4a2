"""The options of ``spearmint run``, as values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spearmint.cli.options import Duration, Finite, PluginOption, storage_option

if TYPE_CHECKING:
    from spearmint.controller.limits import SearchLimits, StudyLimits
    from spearmint.model import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line said; None where config.pb or nothing decides."""

    storage: str | None
    driver: str | None
    method: str
    method_args: str
    max_concurrent: int | None
    queue_ahead: int
    max_finished_jobs: int
    max_broken: int
    max_retries: int | None
    trial_timeout: float | None
    regions: Path | None
    warm_start: int | None
    pruner: str | None
    pruner_args: str | None
    patience: int | None
    target: float | None
    max_time: float | None
    max_trial_time: float | None
    max_cost: float | None
    cost_per_hour: float | None
    grid_size: int
    grid_seed: int
    polling_time: float
    web_status: bool
    host: str
    port: int
    verbose: bool

    def override(self, experiment: Experiment) -> Experiment:
        """Return ``experiment`` with what the command line says instead."""
        from spearmint.config.regions import read_regions

        given: dict[str, Any] = {
            "max_retries": self.max_retries,
            "trial_timeout_s": self.trial_timeout,
            "regions": read_regions(self.regions) if self.regions else None,
            "warm_start": self.warm_start,
            "pruner": self.pruner,
            "pruner_args": self.pruner_args,
        }
        if self.pruner is not None and self.pruner_args is None:
            given["pruner_args"] = ""  # those of config.pb are another pruner's
        changed = {name: value for name, value in given.items() if value is not None}
        return dataclasses.replace(experiment, **changed)

    def check(self, experiment: Experiment) -> None:
        """Raise click.UsageError for an option that would do nothing."""
        if self.pruner_args and not experiment.pruner:
            raise click.UsageError("--pruner-args needs --pruner, or a pruner in config.pb.")
        if self.warm_start and not experiment.regions:
            raise click.UsageError(
                "--warm-start is for regions: name them in config.pb, or by --regions FILE."
            )
        if not self.web_status and (self.port or self.host != _LOOPBACK):
            raise click.UsageError("--host and --port need --web-status.")

    def limits(self, experiment: Experiment) -> SearchLimits:
        """Return the limits of the whole."""
        from spearmint.controller.limits import SearchLimits

        return SearchLimits(
            concurrent=self.max_concurrent or 1,
            queue_ahead=self.queue_ahead,
            polling_s=self.polling_time,
            time_s=self.max_time,
            trial_time_s=self.trial_time(),
            warm_start=experiment.warm_start,
        )

    def trial_time(self) -> float | None:
        """Return the trial seconds that time and money allow; None for any."""
        allowed = [] if self.max_trial_time is None else [self.max_trial_time]
        if self.max_cost is not None:
            if self.cost_per_hour is None:
                raise click.UsageError("--max-cost needs --cost-per-hour.")
            allowed.append(self.max_cost / self.cost_per_hour * 3600.0)
        return min(allowed, default=None)

    def study_limits(self) -> StudyLimits:
        """Return the limits of each region."""
        from spearmint.controller.limits import StudyLimits

        return StudyLimits(
            finished=self.max_finished_jobs,
            broken=self.max_broken,
            patience=self.patience,
            target=self.target,
        )


_POSITIVE = Finite(0.0, min_open=True)
_LOOPBACK = "127.0.0.1"

_OPTIONS = [
    click.option(
        "--driver",
        metavar="NAME",
        help="Where trials run: local, or SGE for Grid Engine; default: that of the earlier runs, "
        "or local.",
    ),
    click.option(
        "--method",
        cls=PluginOption,
        group="spearmint.choosers",
        default="GPEIOptChooser",
        show_default=True,
        help="A chooser of ours or a sampler of Optuna by name, in any case; or your own as "
        "package.module:Class.",
    ),
    click.option("--method-args", default="", metavar="K=V,...", help="Arguments of the chooser."),
    click.option(
        "-n",
        "--max-concurrent",
        type=click.IntRange(1),
        help="Trials that run at once, over all regions; default: 1, and as many as the cell has "
        "GPUs for with --driver=SGE.",
    ),
    click.option(
        "--queue-ahead",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Trials to queue beside those, so that no GPU waits for a proposal; they are chosen "
        "that much earlier.",
    ),
    click.option(
        "--max-finished-jobs",
        type=click.IntRange(1),
        default=10000,
        show_default=True,
        help="Stop after so many complete or pruned trials, of each region, earlier runs included.",
    ),
    click.option(
        "--patience",
        type=click.IntRange(1),
        metavar="K",
        help="Stop a region after K such trials in a row without a better value.",
    ),
    click.option("--target", type=Finite(), help="Stop a region when its best value is this good."),
    click.option("--max-time", type=Duration(), help="Start no trial after 90, 15m, 2h or 1d."),
    click.option(
        "--max-trial-time",
        type=Duration(),
        help="Start no trial after so much time in trials, summed over all, earlier runs included.",
    ),
    click.option(
        "--max-cost",
        type=_POSITIVE,
        metavar="MONEY",
        help="The same, in money: trial time at --cost-per-hour.",
    ),
    click.option(
        "--cost-per-hour",
        type=_POSITIVE,
        metavar="MONEY",
        help="What an hour of a trial costs; the cost so far is shown at the end.",
    ),
    click.option(
        "--pruner",
        cls=PluginOption,
        group="spearmint.pruners",
        metavar="NAME",
        help="End trials early by the values they report: median, halving, hyperband, ..., or "
        "package.module:Class; default: config.pb's pruner, or none.",
    ),
    click.option("--pruner-args", metavar="K=V,...", help="Arguments of the pruner."),
    click.option(
        "--regions",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A search for each region named in FILE, one a line; default: config.pb's regions.",
    ),
    click.option(
        "--warm-start",
        type=click.IntRange(0),
        metavar="N",
        help="Let a region that starts first try N points that were best in finished regions; "
        "then as many regions run at once as trials; default: config.pb's warm_start, or 0.",
    ),
    click.option(
        "--max-broken",
        type=click.IntRange(1),
        default=5,
        show_default=True,
        help="Give up when the first N trials all break, or 10 N in a row later.",
    ),
    click.option(
        "--max-retries",
        type=click.IntRange(0),
        help="Run a trial again whose job vanished or crashed; default: config.pb's max_retries, "
        "or 1.",
    ),
    click.option(
        "--trial-timeout",
        type=Duration(),
        help="End a trial after 90, 15m or 2h; it is broken then.",
    ),
    click.option(
        "--grid-size",
        type=click.IntRange(1),
        default=20000,
        show_default=True,
        help="Candidates counted in trace.csv; kept for the original's scripts.",
    ),
    click.option(
        "--grid-seed",
        type=click.IntRange(0),
        default=1,
        show_default=True,
        help="Seed of the chooser.",
    ),
    click.option(
        "--polling-time",
        type=Duration(),
        default="3",
        show_default=True,
        help="Seconds between polls of a queue at least; results are noticed at once.",
    ),
    storage_option,
    click.option("-w", "--web-status", is_flag=True, help="Serve optuna-dashboard meanwhile."),
    click.option("--host", default=_LOOPBACK, show_default=True, help="Address for -w."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        show_default=True,
        help="Port for -w; 0 is a free one.",
    ),
    click.option(
        "-v", "--verbose", is_flag=True, help="Show the output of broken trials at the end."
    ),
]


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``command`` every option of :class:`RunOptions`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
