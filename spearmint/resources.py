"""What each trial needs of a queue.

Each field of :class:`Resources` is declared here and nowhere else: its metadata makes the option
of ``spearmint run``, the key in config.pb's block ``resources``, the messages about both, the row
of the reference page and, by ``submit``, the arguments of a queue's submit command.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spearmint.errors import InputError
from spearmint.fields import DURATION, INTEGER, PATH, TEXT, VARIABLE, Key, setting, settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a driver with a queue asks for, for each trial."""

    gpus: int = setting(1, INTEGER, "--gpus", key=Key(number=1), minimum=0, help="GPUs of one host")
    slots: int = setting(
        1,
        INTEGER,
        "--slots",
        key=Key(number=2),
        minimum=1,
        help="Slots, mostly CPU cores; also the threads of numerical libraries",
    )
    parallel_environment: str = setting(
        "",
        TEXT,
        "--pe",
        key=Key(number=3),
        metavar="NAME",
        help="Parallel environment that several slots come from",
        absent="smp",
    )
    walltime_s: float | None = setting(
        None,
        DURATION,
        "--walltime",
        key=Key(number=4, name="walltime"),
        help="The queue ends a trial after this long, such as 90, 15m, 2h or 1d",
        note="The trial is broken then.",
    )
    memory: str = setting(
        "",
        TEXT,
        "--memory",
        key=Key(number=5),
        metavar="SIZE",
        help="Memory a host must have free, e.g. 8G",
    )
    queue: str = setting(
        "", TEXT, "-q", "--queue", key=Key(number=6), metavar="NAME", help="Queue, as for qsub"
    )
    project: str = setting(
        "", TEXT, "-P", "--project", key=Key(number=7), metavar="NAME", help="Project, as for qsub"
    )
    requests: tuple[str, ...] = setting(
        (),
        TEXT,
        "-l",
        "--request",
        key=Key(number=8, name="request"),
        repeated=True,
        metavar="NAME=VALUE",
        help="Any other resource, as for qsub",
    )
    options: tuple[str, ...] = setting(
        (),
        TEXT,
        "--submit-option",
        key=Key(number=9, name="option"),
        repeated=True,
        metavar="ARG",
        help="Any other argument of qsub",
    )
    environment: tuple[tuple[str, str], ...] = setting(
        (),
        VARIABLE,
        "--env",
        key=Key(number=10, name="env"),
        repeated=True,
        metavar="NAME=VALUE",
        help="A variable of each trial",
    )
    modules: tuple[str, ...] = setting(
        (),
        TEXT,
        "--module",
        key=Key(number=11, name="module"),
        repeated=True,
        metavar="NAME",
        help="Environment module to load",
    )
    venv: Path | None = setting(
        None,
        PATH,
        "--venv",
        key=Key(number=12),
        help="Python environment that trials run in",
        absent="the one spearmint runs in",
    )
    setup: tuple[str, ...] = setting(
        (),
        TEXT,
        "--setup",
        key=Key(number=13),
        repeated=True,
        metavar="LINE",
        help="Line of shell to run first",
    )


def submit_arguments(resources: Resources, driver: str) -> tuple[str, ...]:
    """Return the arguments of a submit command for the fields that declare some.

    Args:
        resources: Of one trial.
        driver: Name of the driver, ``SGE``.

    Raises:
        InputError: A field is set that declares arguments, but none for this driver.
    """
    arguments: list[str] = []
    for declared in settings_of(type(resources)):
        value = getattr(resources, declared.name)
        if not declared.submit or value == declared.default:
            continue
        if driver not in declared.submit:
            known = ", ".join(declared.submit)
            raise InputError(
                f"{declared.flag}: driver {driver} has no request for {declared.name}",
                f"Leave it out; the drivers that have one: {known}.",
            )
        for item in value if declared.repeated else (value,):
            arguments += [part.format(value=item) for part in declared.submit[driver]]
    return tuple(arguments)
