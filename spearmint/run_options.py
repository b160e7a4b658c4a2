"""The options of ``spearmint run``; each is declared here only: :mod:`spearmint.fields`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spearmint.fields import DURATION, INTEGER, NUMBER, PATH, SECONDS, SWITCH, TEXT, Key, setting

STOP = "When to stop"

_trial = partial(setting, group="Trials")
_stop = partial(setting, group=STOP)
_pruning = partial(setting, group="Early stopping of trials")
_storage = partial(setting, group="Storage and records")
_display = partial(setting, group="Display")
_instead = partial(setting, group="Instead of a search")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line gives; None where config.pb, or nothing, decides."""

    driver: str | None = _trial(
        None,
        TEXT,
        "--driver",
        metavar="NAME",
        registry="spearmint.drivers.registry:DRIVERS",
        plugins="spearmint.drivers",
        help="Where trials run: local, SGE for Grid Engine, or your package.module:Class",
        absent="that of the earlier runs, or local",
    )
    method: str = _trial(
        "GPEIOptChooser",
        TEXT,
        "--method",
        metavar="NAME",
        registry="spearmint.choosers.registry:CHOOSERS",
        plugins="spearmint.choosers",
        help="A chooser of ours, a sampler of Optuna, or your package.module:Class",
        note="Case does not matter.",
    )
    method_args: str = _trial(
        "", TEXT, "--method-args", metavar="K=V,...", help="Arguments of the chooser"
    )
    max_concurrent: int | None = _trial(
        None,
        INTEGER,
        "-n",
        "--max-concurrent",
        minimum=1,
        help="Trials that run at once, over all regions",
        absent="1, and as many as the cell has GPUs for with --driver=SGE",
    )
    queue_ahead: int = _trial(
        0,
        INTEGER,
        "--queue-ahead",
        minimum=0,
        needs="queue",
        help="Trials to queue beside those, so that no GPU waits for a proposal; they are chosen "
        "that much earlier",
    )
    max_retries: int | None = _trial(
        None,
        INTEGER,
        "--max-retries",
        minimum=0,
        key=Key(number=102),
        help="How often to run a trial again whose job vanished or crashed without a result",
        absent="1",
    )
    trial_timeout: float | None = _trial(
        None,
        DURATION,
        "--trial-timeout",
        key=Key(
            number=103,
            kind=SECONDS,
            sets="trial_timeout_s",
            help="End a trial after so many seconds; it counts as broken",
        ),
        help="End a trial after this long, e.g. 90, 15m or 2h; it counts as broken",
    )
    max_finished_jobs: int = _stop(
        10000,
        INTEGER,
        "--max-finished-jobs",
        limit="finished",
        minimum=1,
        help="Stop after so many complete or pruned trials, of each region, earlier runs included",
        note="Broken ones do not count.",
    )
    target: float | None = _stop(
        None,
        NUMBER,
        "--target",
        help="Stop a region when its best value is this good",
    )
    patience: int | None = _stop(
        None,
        INTEGER,
        "--patience",
        minimum=1,
        metavar="K",
        help="Stop a region after K such trials in a row without a better value",
    )
    max_time: float | None = _stop(
        None,
        DURATION,
        "--max-time",
        limit="time_s",
        help="Stop starting trials after this long, e.g. 90, 15m, 2h or 1d",
    )
    max_trial_time: float | None = _stop(
        None,
        DURATION,
        "--max-trial-time",
        help="Stop starting trials after so much time in trials, summed over all, earlier runs "
        "included",
    )
    max_cost: float | None = _stop(
        None,
        NUMBER,
        "--max-cost",
        minimum=0,
        is_open=True,
        metavar="MONEY",
        needs="cost_per_hour",
        help="The same, in money: trial time at --cost-per-hour",
    )
    cost_per_hour: float | None = _stop(
        None,
        NUMBER,
        "--cost-per-hour",
        minimum=0,
        is_open=True,
        metavar="MONEY",
        help="What an hour of a trial costs; the cost so far is shown at the end",
    )
    max_broken: int = _stop(
        5,
        INTEGER,
        "--max-broken",
        limit="broken",
        minimum=1,
        metavar="N",
        help="Give up when the first N trials all break, or 10 N in a row later",
    )
    pruner: str | None = _pruning(
        None,
        TEXT,
        "--pruner",
        metavar="NAME",
        key=Key(number=105),
        plugins="spearmint.pruners",
        help="End trials early by the values they report: median, halving, hyperband, another "
        "pruner of Optuna, or package.module:Class",
        absent="none",
    )
    pruner_args: str | None = _pruning(
        None,
        TEXT,
        "--pruner-args",
        metavar="K=V,...",
        key=Key(number=106),
        needs="pruner",
        help="Arguments of the pruner, e.g. n_startup_trials=5,n_warmup_steps=3",
    )
    regions: Path | None = setting(
        None,
        PATH,
        "--regions",
        group="Regions",
        metavar="FILE",
        key=Key(
            number=104,
            name="region",
            kind=TEXT,
            repeated=True,
            help="A region (a dataset) to search",
        ),
        help="A search for each region (a dataset) that FILE names, one on each line",
        absent="one search without regions",
    )
    warm_start: int | None = setting(
        None,
        INTEGER,
        "--warm-start",
        group="Regions",
        minimum=0,
        metavar="N",
        key=Key(number=107),
        needs="regions",
        help="Let a region that starts first try N points that were best in finished regions; "
        "then as many regions run at once as trials",
        absent="0",
    )
    storage: str | None = _storage(
        None,
        TEXT,
        "--storage",
        metavar="URL",
        environment="SPEARMINT_STORAGE",
        help="Any Optuna storage, e.g. postgresql://HOST/DB",
        absent="SQLite beside config.pb",
        note="A URL with a password belongs into $SPEARMINT_STORAGE.",
    )
    grid_size: int = _storage(
        20000,
        INTEGER,
        "--grid-size",
        minimum=1,
        help="Candidates counted in trace.csv; kept for the original's scripts",
    )
    grid_seed: int = _trial(1, INTEGER, "--grid-seed", minimum=0, help="Seed of the chooser")
    polling_time: float = _trial(
        3.0,
        DURATION,
        "--polling-time",
        limit="polling_s",
        help="Seconds between polls of a queue at least; results are noticed at once",
    )
    web_status: bool = _display(
        False, SWITCH, "-w", "--web-status", help="Serve optuna-dashboard while the search runs"
    )
    host: str = _display("127.0.0.1", TEXT, "--host", needs="web_status", help="Address for -w")
    port: int = _display(
        0,
        INTEGER,
        "--port",
        minimum=0,
        maximum=65535,
        needs="web_status",
        help="Port for -w",
        absent="0, a free one",
    )
    verbose: bool = _display(
        False, SWITCH, "-v", "--verbose", help="Show the output of broken trials at the end"
    )
    dry_run: bool = _instead(
        False, SWITCH, "--dry-run", help="Print what would be submitted; run nothing"
    )
    cancel: bool = _instead(
        False, SWITCH, "--cancel", help="End the trials that run; the next run starts them"
    )
