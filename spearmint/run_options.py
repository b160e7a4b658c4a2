"""The options of ``spearmint run``; see :mod:`spearmint.fields` for what a declaration makes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spearmint.fields import (
    DURATION,
    ENDING,
    INTEGER,
    LAUNCHER,
    NUMBER,
    PATH,
    SECONDS,
    SWITCH,
    TEXT,
    Key,
    setting,
)

STOP = "When to stop"

_trial = partial(setting, group="Trials")
_stop = partial(setting, group=STOP)
_pruning = partial(setting, group="Early stopping of trials")
_storage = partial(setting, group="Storage and records")
_display = partial(setting, group="Display")
_instead = partial(setting, group="Instead of a search")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Values of the command line; None if the option is not given."""

    driver: str | None = _trial(
        None,
        TEXT,
        "--driver",
        is_common=True,
        metavar="NAME",
        registry="spearmint.drivers.registry:DRIVERS",
        plugins="spearmint.drivers",
        help="Run trials on this host (local), on Grid Engine (SGE), on Slurm (SLURM), on "
        "HTCondor (HTCONDOR), on workers of Celery (CELERY), or by a custom driver, "
        "package.module:Class.",
        absent="the driver of earlier runs, or local",
    )
    method: str = _trial(
        "GPEIOptChooser",
        TEXT,
        "--method",
        is_common=True,
        metavar="NAME",
        registry="spearmint.choosers.registry:CHOOSERS",
        plugins="spearmint.choosers",
        help="Propose trials by this chooser: a built-in one, a sampler of Optuna, or a custom "
        "package.module:Class. Case does not matter.",
    )
    method_args: str = _trial(
        "",
        TEXT,
        "--method-args",
        metavar="K=V,...",
        help="Set arguments of the chooser, e.g. mcmc_iters=5.",
        absent="those of the chooser",
    )
    learn_from: tuple[str, ...] = _trial(
        (),
        TEXT,
        "--learn-from",
        repeated=True,
        metavar="DIR",
        help="Learn from the earlier search in DIR, also of another user: first try its best "
        "points, then use its model as far as it ranks the trials of this search right. Its "
        "variables and bounds can differ. Or the URL of a storage, with #STUDY at the end; or "
        "'regions': the regions of this search learn from each other. Give it in each run, as "
        "--method, or write learn_from into config.pb.",
        key=Key(
            number=111,
            help="Learn from this earlier search, as --learn-from does, which adds to it. A path "
            'is relative to the directory of config.pb; "generations" is the last generation of '
            'this search, and "regions" are its other regions.',
        ),
        absent="no earlier search",
    )
    max_concurrent: int | None = _trial(
        None,
        INTEGER,
        "-n",
        "--max-concurrent",
        is_common=True,
        minimum=1,
        help="Run this many trials at the same time; with --batch, this many jobs of trials. If "
        "there are regions, they share this number.",
        absent="1; with a queue, as many as its hosts have room for",
    )
    queue_ahead: int = _trial(
        0,
        INTEGER,
        "--queue-ahead",
        minimum=0,
        needs="queue",
        help="Queue this many trials in addition to --max-concurrent, so that no GPU waits for a "
        "proposal. Their points are chosen earlier, without the newest results. Requires a "
        "driver with a queue.",
    )
    wait: bool = _trial(
        False,
        SWITCH,
        "--wait",
        limit="waits",
        needs="queue",
        help="Keep waiting if the queue can never run a trial as it is configured now, for example "
        "because all its hosts are disabled. Without it, the search then ends with an error. A "
        "search whose first trial has started, or that waits for other jobs, always waits.",
    )
    max_retries: int | None = _trial(
        None,
        INTEGER,
        "--max-retries",
        minimum=0,
        key=Key(number=102),
        help="Retry a trial up to this many times if its job disappears or crashes without a "
        "result.",
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
            help="Terminate a trial after this many seconds. It counts as failed (broken).",
        ),
        help="Terminate a trial after this long, e.g. 90, 15m or 2h. It counts as failed (broken).",
        absent="no limit",
    )
    batch: int | None = _trial(
        None,
        INTEGER,
        "--batch",
        metavar="K",
        minimum=1,
        key=Key(number=112),
        help="Run up to K trials in each job, which main_batch(trials) trains at once. Each has "
        "its own result.",
        absent="1, a job for each trial",
    )
    launcher: str | None = _trial(
        None,
        LAUNCHER,
        "--launcher",
        metavar="torchrun",
        key=Key(number=109),
        help="Run each trial in several processes, one for each of its GPUs, that PyTorch's "
        "torchrun starts. Each process calls main; rank 0 returns the result. --nodes: on several "
        "hosts.",
        absent="one process",
    )
    processes: int | None = _trial(
        None,
        INTEGER,
        "--processes",
        metavar="N",
        minimum=1,
        needs="launcher",
        key=Key(number=110),
        help="With --launcher, start this many processes for each trial, on each of its hosts.",
        absent="the GPUs of a trial on a host",
    )
    retry_broken: bool = _trial(
        False,
        SWITCH,
        "--retry-broken",
        help="First rerun the points of failed (broken) trials as new trials, for example after "
        "a missing file was supplied. The failures no longer count against their points.",
    )
    again: bool = _trial(
        False,
        SWITCH,
        "--again",
        help="If the search is finished, begin its next generation with the best points of the "
        "last one, which moves to the directory generations. Otherwise continue the search.",
    )
    then_final: bool = _trial(
        False,
        SWITCH,
        "--then-final",
        help="As soon as a region is done, train its best trial as spearmint final does, while the "
        "search of other regions continues.",
    )
    max_finished_jobs: int = _stop(
        10000,
        INTEGER,
        "--max-finished-jobs",
        is_common=True,
        limit="finished",
        minimum=1,
        help="Stop after this many complete, pruned or paused trials, including earlier runs. "
        "Failed (broken) trials do not count. If there are regions, the number is for each region.",
    )
    target: float | None = _stop(
        None,
        NUMBER,
        "--target",
        help="Stop when the best value is at least this good. If there are regions, each one "
        "stops separately.",
        absent="no target",
    )
    patience: int | None = _stop(
        None,
        INTEGER,
        "--patience",
        minimum=1,
        metavar="K",
        help="Stop after K complete or pruned trials in a row without a better value. If there "
        "are regions, each one stops separately.",
        absent="no limit",
    )
    max_time: float | None = _stop(
        None,
        DURATION,
        "--max-time",
        is_common=True,
        limit="time_s",
        help="Stop starting trials after this long, e.g. 90, 15m, 2h or 1d.",
        absent="no limit",
    )
    max_trial_time: float | None = _stop(
        None,
        DURATION,
        "--max-trial-time",
        help="Stop starting trials when the run times of all trials, including earlier runs, add "
        "up to this, e.g. 15m, 2h or 1d.",
        absent="no limit",
    )
    budget: float | None = _stop(
        None,
        NUMBER,
        "--budget",
        is_common=True,
        minimum=0,
        is_open=True,
        metavar="DOLLARS",
        help="Stop before the nodes of the cluster have cost this many dollars since the first "
        "start with --budget: all nodes by wall time, also idle, booting and lost ones and the "
        "master. A trial starts only if the dollars last until its probable end. Reads the bill "
        "on the master of a starcluster cluster.",
        absent="no limit",
    )
    then: str | None = _stop(
        None,
        ENDING,
        "--then",
        metavar="terminate",
        needs="budget",
        help="Terminate the cluster with starcluster when the search ends by itself. If that is "
        "not possible from this machine, print the command.",
        absent="the cluster continues to run",
    )
    bill: Path | None = setting(
        None,
        PATH,
        "--bill",
        group=STOP,
        metavar="FILE",
        needs="budget",
        help="Read the bill of the cluster from FILE, which only root or you can write.",
        absent="/var/lib/starmint/bill.json",
    )
    max_cost: float | None = _stop(
        None,
        NUMBER,
        "--max-cost",
        minimum=0,
        is_open=True,
        metavar="MONEY",
        needs="cost_per_hour",
        help="Stop starting trials when the run times of all trials, including earlier runs, "
        "have cost this much at --cost-per-hour. The time of nodes without trials does not count; "
        "on a cluster use --budget.",
        absent="no limit",
    )
    cost_per_hour: float | None = _stop(
        None,
        NUMBER,
        "--cost-per-hour",
        minimum=0,
        is_open=True,
        metavar="MONEY",
        help="Set the price of one hour of one trial, in any currency. The end of the output "
        "shows trial time at this price.",
        absent="no price",
    )
    max_broken: int = _stop(
        5,
        INTEGER,
        "--max-broken",
        limit="broken",
        minimum=1,
        metavar="N",
        help="Stop with an error when the first N trials all fail (are broken), or later 10 N "
        "trials in a row.",
    )
    pruner: str | None = _pruning(
        None,
        TEXT,
        "--pruner",
        metavar="NAME",
        key=Key(number=105),
        plugins="spearmint.pruners",
        help="Stop a trial early if the values that it reports are poor, by this pruner: median, "
        "halving, hyperband, another pruner of Optuna, or a custom package.module:Class.",
        absent="no pruner",
    )
    pruner_args: str | None = _pruning(
        None,
        TEXT,
        "--pruner-args",
        metavar="K=V,...",
        key=Key(number=106),
        needs="pruner",
        help="Set arguments of the pruner, e.g. n_startup_trials=5,n_warmup_steps=3.",
        absent="those of the pruner",
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
            help="Run a separate search for this region (dataset).",
        ),
        help="Run a separate search for each region (dataset) that FILE lists, one on each line.",
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
        help="In each new region, first try N points that were best in the finished regions. The "
        "regions then run in turn, at most --max-concurrent at the same time.",
        absent="0",
    )
    storage: str | None = _storage(
        None,
        TEXT,
        "--storage",
        metavar="URL",
        environment="SPEARMINT_STORAGE",
        help="Use this Optuna storage, e.g. postgresql://HOST/DB. Put a URL with a "
        "password into $SPEARMINT_STORAGE.",
        absent="$SPEARMINT_STORAGE, the storage of earlier runs, or SQLite next to config.pb",
    )
    grid_size: int = _storage(
        20000,
        INTEGER,
        "--grid-size",
        minimum=1,
        help="Set the number of candidates in trace.csv, for scripts of the original Spearmint. "
        "It does not change the search.",
    )
    grid_seed: int = _trial(
        1, INTEGER, "--grid-seed", minimum=0, help="Set the random seed of the chooser."
    )
    polling_time: float = _trial(
        3.0,
        DURATION,
        "--polling-time",
        limit="polling_s",
        help="Wait at least this long between two polls of a queue, e.g. 3s or 1m. Results are "
        "noticed immediately.",
        absent="3s",
    )
    web_status: bool = _display(
        False,
        SWITCH,
        "-w",
        "--web-status",
        help="Serve optuna-dashboard and the report while the search runs.",
    )
    host: str = _display(
        "127.0.0.1",
        TEXT,
        "--host",
        needs="web_status",
        help="Serve the dashboard of -w at this address.",
    )
    port: int = _display(
        0,
        INTEGER,
        "--port",
        minimum=0,
        maximum=65535,
        needs="web_status",
        help="Serve the dashboard of -w at this port.",
        absent="0, a free port",
    )
    verbose: bool = _display(
        False,
        SWITCH,
        "-v",
        "--verbose",
        help="Show the output of failed (broken) trials at the end.",
    )
    dry_run: bool = _instead(
        False, SWITCH, "--dry-run", help="Print the job that would be submitted, and run nothing."
    )
    cancel: bool = _instead(
        False,
        SWITCH,
        "--cancel",
        help="Terminate the running trials of an earlier run. The next run restarts them.",
    )
