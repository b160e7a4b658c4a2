"""What a job needs of the cell.

Each field of :class:`Resources` is declared here and nowhere else: its metadata makes the option
of ``sge-jobs submit`` and ``run``, and the arguments of qsub.
"""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sge_jobs.errors import InputError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")
_METADATA = "need"


def read_duration(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``10m``, ``2h``, ``1d`` or ``1:30:00``.

    Raises:
        ValueError: It is none of these.
    """
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    if duration := _DURATION.fullmatch(text):
        return float(duration[1]) * _UNITS[duration[2] or "s"]
    raise ValueError("must be like 90s, 10m, 2h, 1d or 1:30:00")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How one resource is asked for.

    Attributes:
        name, default: Of the field.
        flags: Its options, ``("-g", "--gpus")``.
        help: What the option does.
        metavar: Stands for its value in the help.
        qsub: Returns the arguments of qsub for all resources; called when this one is set.
        parse: Returns the value of the option's text; ValueError with what was expected.
        repeated: Whether the option may be given several times; the value is a tuple then.
    """

    name: str = ""
    default: Any = None
    flags: tuple[str, ...]
    help: str
    metavar: str
    qsub: Callable[[Resources], Sequence[str]]
    parse: Callable[[str], Any] = str
    repeated: bool = False


def _need(
    default: Any, *flags: str, qsub: Callable[[Resources], Sequence[str]], **metadata: Any
) -> Any:
    need = Need(flags=flags, qsub=qsub, **metadata)
    return dataclasses.field(default=default, metadata={_METADATA: need})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job needs of the cell; a field with its default asks for nothing.

    Attributes:
        gpus: GPUs on one host.
        walltime_s: Seconds until Grid Engine ends the job; None for the queue's own.
        memory: Memory a host must have free, such as ``8G``; empty for any.
        requests: Further ``-l`` requests, ``name=value`` each.
        slots: Slots; more than one needs a parallel environment.
        parallel_environment: Its name; ``smp`` when there are several slots and none is named.
        queue, project: Empty for the cell's default.
        options: Further arguments of qsub, as they are.
    """

    gpus: int = _need(
        0, "-g", "--gpus", metavar="N", help="GPUs on one host (0)", parse=int,
        qsub=lambda need: ("-l", f"gpu={need.gpus}"),
    )  # fmt: skip
    walltime_s: float | None = _need(
        None, "-t", "--time", metavar="TIME", help="end it after 90s, 10m, 2h, 1d, 1:30:00",
        parse=read_duration, qsub=lambda need: ("-l", f"h_rt={math.ceil(need.walltime_s or 0)}"),
    )  # fmt: skip
    memory: str = _need(
        "", "-m", "--memory", metavar="SIZE", help="memory the host must have free: 8G",
        qsub=lambda need: ("-l", f"mem_free={need.memory}"),
    )  # fmt: skip
    requests: tuple[str, ...] = _need(
        (), "-l", "--request", metavar="NAME=VALUE", help="as of qsub -l", repeated=True,
        qsub=lambda need: [part for request in need.requests for part in ("-l", request)],
    )  # fmt: skip
    slots: int = _need(
        1, "--slots", metavar="N", help="slots on one host (1)", parse=int,
        qsub=lambda need: ("-pe", need.parallel_environment or "smp", str(need.slots)),
    )  # fmt: skip
    parallel_environment: str = _need(
        "", "--pe", metavar="NAME", help="parallel environment of the slots (smp)",
        qsub=lambda need: ("-pe", need.parallel_environment, "1") if need.slots == 1 else (),
    )  # fmt: skip
    queue: str = _need(
        "", "-q", "--queue", metavar="QUEUE", help="queue; default: any",
        qsub=lambda need: ("-q", need.queue),
    )  # fmt: skip
    project: str = _need(
        "", "-P", "--project", metavar="PROJECT", help="project",
        qsub=lambda need: ("-P", need.project),
    )  # fmt: skip
    options: tuple[str, ...] = _need(
        (), "--qsub", metavar="OPTIONS", help="further options of qsub, in quotes",
        parse=lambda text: tuple(shlex.split(text)),
        qsub=lambda need: (),  # the last ones, after those of an array
    )  # fmt: skip


def needs() -> tuple[Need, ...]:
    """Return how each resource is asked for, in the order of qsub's arguments."""
    return tuple(
        dataclasses.replace(field.metadata[_METADATA], name=field.name, default=field.default)
        for field in dataclasses.fields(Resources)
    )


def resource_argv(resources: Resources) -> list[str]:
    """Return the arguments of qsub that ask for ``resources``."""
    return [
        argument
        for need in needs()
        if getattr(resources, need.name) != need.default
        for argument in need.qsub(resources)
    ]


def parse_resources(texts: dict[str, Any]) -> Resources:
    """Return the resources that options ask for.

    Args:
        texts: Text or None by name of the field, a list of texts where it may be repeated.

    Raises:
        InputError: A text has no meaning; the message names its option.
    """
    values: dict[str, Any] = {}
    for need in needs():
        given = texts[need.name]
        try:
            if need.repeated:
                values[need.name] = tuple(need.parse(text) for text in given)
            elif given not in (None, ""):
                values[need.name] = need.parse(given)
        except ValueError as error:
            raise InputError(f"{need.flags[-1]}={given}: {error}") from error
    return Resources(**values)
