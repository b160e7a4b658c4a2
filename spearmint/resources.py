"""Resources that each trial requests from a queue.

Each field of :class:`Resources` is declared only here. Its metadata makes the option of
``spearmint run``, the key in the block ``resources`` of config.pb, the messages about both, the
row of the reference page and, by ``submit``, the arguments of a queue's submit command.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spearmint.errors import InputError
from spearmint.fields import (
    DECISION,
    DURATION,
    GPUS,
    INTEGER,
    PATH,
    TEXT,
    VARIABLE,
    Key,
    setting,
    settings_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources that a driver with a queue requests for each trial."""

    gpus: float = setting(
        1,
        GPUS,
        "--gpus",
        key=Key(number=1),
        help="Request this many GPUs on one host, or a share of one GPU, e.g. 0.25.",
    )
    slots: int = setting(
        1,
        INTEGER,
        "--slots",
        key=Key(number=2),
        minimum=1,
        help="Request this many slots, mostly CPU cores. Numerical libraries use as many threads.",
    )
    parallel_environment: str = setting(
        "",
        TEXT,
        "--pe",
        key=Key(number=3),
        metavar="NAME",
        help="Request more than one slot from this parallel environment.",
        absent="smp",
    )
    walltime_s: float | None = setting(
        None,
        DURATION,
        "--walltime",
        key=Key(number=4, name="walltime"),
        help="Request this run time, e.g. 90, 15m, 2h or 1d. The queue terminates a trial that "
        "runs longer, and it counts as failed (broken).",
        absent="the limit of the queue",
    )
    memory: str = setting(
        "",
        TEXT,
        "--memory",
        key=Key(number=5),
        metavar="SIZE",
        help="Request a host with this much free memory, e.g. 8G.",
        absent="no request",
    )
    queue: str = setting(
        "",
        TEXT,
        "-q",
        "--queue",
        key=Key(number=6),
        metavar="NAME",
        help="Submit to this queue, as qsub -q does; with Slurm, to this partition.",
        absent="a queue that Grid Engine chooses, or Slurm's default partition",
    )
    project: str = setting(
        "",
        TEXT,
        "-P",
        "--project",
        key=Key(number=7),
        metavar="NAME",
        help="Submit for this project, as qsub -P does; with Slurm, for this account; with "
        "HTCondor, for this accounting group.",
        absent="no project",
    )
    requests: tuple[str, ...] = setting(
        (),
        TEXT,
        "-l",
        "--request",
        key=Key(number=8, name="request"),
        repeated=True,
        metavar="NAME=VALUE",
        help="Request another resource, as qsub -l does; with Slurm, pass --NAME=VALUE to sbatch; "
        "with HTCondor, add NAME = VALUE to the submit description.",
    )
    options: tuple[str, ...] = setting(
        (),
        TEXT,
        "--submit-option",
        key=Key(number=9, name="option"),
        repeated=True,
        metavar="ARG",
        help="Pass this argument to qsub, sbatch or condor_submit.",
    )
    environment: tuple[tuple[str, str], ...] = setting(
        (),
        VARIABLE,
        "--env",
        key=Key(number=10, name="env"),
        repeated=True,
        metavar="NAME=VALUE",
        help="Set this environment variable in each trial.",
    )
    modules: tuple[str, ...] = setting(
        (),
        TEXT,
        "--module",
        key=Key(number=11, name="module"),
        repeated=True,
        metavar="NAME",
        help="Load this environment module before each trial.",
    )
    venv: Path | None = setting(
        None,
        PATH,
        "--venv",
        key=Key(number=12),
        help="Run trials in this Python virtual environment.",
        absent="the environment of the spearmint command",
    )
    setup: tuple[str, ...] = setting(
        (),
        TEXT,
        "--setup",
        key=Key(number=13),
        repeated=True,
        metavar="LINE",
        help="Run this line of shell before each trial.",
    )
    qos: str = setting(
        "",
        TEXT,
        "--qos",
        key=Key(number=14),
        metavar="NAME",
        help="Submit with this quality of service of Slurm.",
        absent="the account's own",
        submit={"SLURM": ("--qos={value}",)},
    )
    constraint: str = setting(
        "",
        TEXT,
        "--constraint",
        key=Key(number=15),
        metavar="FEATURES",
        help="Request a host with these features of Slurm, e.g. a100 or 'a100|h100'.",
        absent="any host",
        submit={"SLURM": ("--constraint={value}",)},
    )
    file_transfer: str = setting(
        "auto",
        DECISION,
        "--file-transfer",
        key=Key(number=16),
        metavar="WHEN",
        help="With HTCondor and Celery, yes sends the experiment's directory to the hosts and "
        "brings results, output and files back; no expects that they share it; auto finds out.",
        submit={"HTCONDOR": (), "CELERY": ()},
    )
    nodes: int = setting(
        1,
        INTEGER,
        "--nodes",
        key=Key(number=17),
        metavar="N",
        minimum=1,
        help="With --launcher=torchrun, run each trial on this many hosts, each with --gpus and "
        "--slots. With Grid Engine, --pe names a parallel environment.",
        submit={"SLURM": (), "SGE": ()},
    )


def submit_arguments(resources: Resources, driver: str) -> tuple[str, ...]:
    """Return the arguments of a submit command that the fields declare.

    Args:
        resources: Resources of one trial.
        driver: Name of the driver, such as ``SGE``.

    Raises:
        InputError: A field is set that declares arguments for other drivers only.
    """
    arguments: list[str] = []
    for declared in settings_of(type(resources)):
        value = getattr(resources, declared.name)
        if not declared.submit or value == declared.default:
            continue
        if driver not in declared.submit:
            known = ", ".join(declared.submit)
            raise InputError(
                f"driver {driver} does not support {declared.flag} ({declared.name})",
                f"Leave it out, or use a driver that supports it: {known}.",
            )
        for item in value if declared.repeated else (value,):
            arguments += [part.format(value=item) for part in declared.submit[driver]]
    return tuple(arguments)
