"""The resources that a job requests.

Each field of :class:`Resources` is declared only here: the options of ``sge-jobs submit`` and
``run``, and the arguments of qsub, come from its metadata.
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
from sge_jobs.sizes import read_size

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")
_LEAST_MEMORY = 1e6
_METADATA = "need"


def read_duration(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``10m``, ``2h``, ``1d`` or ``1:30:00``.

    Raises:
        ValueError: ``text`` has another form.
    """
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    if duration := _DURATION.fullmatch(text):
        return float(duration[1]) * _UNITS[duration[2] or "s"]
    raise ValueError("expected 90, 90s, 10m, 2h, 1d or 1:30:00")


def read_gpus(value: str | float) -> float:
    """Return a number of GPUs, or a share of one GPU: ``2``, ``0``, ``0.25``.

    Raises:
        ValueError: ``value`` is not such a number. A share has at most two decimal places.
    """
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if number >= 1 or number == 0:
        if number.is_integer():
            return int(number)
    elif number > 0 and round(number, 2) == number:
        return number
    raise ValueError("expected a whole number, or a share of one GPU from 0.01 to 0.99")


def read_memory(text: str) -> str:
    """Return a size that Grid Engine accepts, such as ``8G`` or ``.5G``, unchanged.

    Raises:
        ValueError: ``text`` has another form, or is less than a megabyte: a unit is missing.
    """
    try:
        is_enough = read_size(text) >= _LEAST_MEMORY
    except ValueError:
        is_enough = False
    if not is_enough:
        raise ValueError("expected a size of at least 1M with its unit, e.g. 8G or 500M")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How users request one resource, and how it is passed to qsub.

    Attributes:
        name, default: Name and default of the field.
        flags: Options of the commands, ``("-g", "--gpus")``.
        help: Help of the option.
        metavar: Name of the value in the help.
        qsub: Returns the arguments of qsub; called if the resource differs from its default.
        parse: Returns the value for the text of the option; ValueError names what is expected.
        repeated: Whether the option can be given several times; the value is then a tuple.
        common: Whether the help lists the option under "Common options".
    """

    name: str = ""
    default: Any = None
    flags: tuple[str, ...]
    help: str
    metavar: str
    qsub: Callable[[Resources], Sequence[str]]
    parse: Callable[[str], Any] = str
    repeated: bool = False
    common: bool = False


def _need(
    default: Any, *flags: str, qsub: Callable[[Resources], Sequence[str]], **metadata: Any
) -> Any:
    need = Need(flags=flags, qsub=qsub, **metadata)
    return dataclasses.field(default=default, metadata={_METADATA: need})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources that a job requests; a field with its default requests nothing.

    Attributes:
        gpus: GPUs of one host, or a share of one GPU, such as 0.25.
        walltime_s: Seconds until Grid Engine terminates the job; None for the limit of the queue.
        memory: Free memory that the host must have, such as ``8G``; empty for any.
        requests: Further ``-l`` requests, each ``name=value``.
        slots: Slots; more than one requires a parallel environment.
        parallel_environment: By default ``smp`` if there are several slots.
        queue, project: Empty for the default of the cell.
        options: Further arguments of qsub, not changed.
    """

    gpus: float = _need(
        0, "-g", "--gpus", metavar="N", parse=read_gpus, common=True,
        help="Assign this many GPUs of one host, or a share of one GPU, e.g. 0.25. Default: 0.",
        qsub=lambda need: ("-l", f"gpu{'_share' if 0 < need.gpus < 1 else ''}={need.gpus:.9g}"),
    )  # fmt: skip
    walltime_s: float | None = _need(
        None, "-t", "--time", metavar="TIME", parse=read_duration, common=True,
        help="Terminate the job after this time, e.g. 90s, 10m, 2h, 1d or 1:30:00. Default: the"
        " limit of the queue.",
        qsub=lambda need: ("-l", f"h_rt={math.ceil(need.walltime_s or 0)}"),
    )  # fmt: skip
    memory: str = _need(
        "", "-m", "--memory", metavar="SIZE", parse=read_memory,
        help="Use a host with this much free memory, e.g. 8G. Default: any host.",
        qsub=lambda need: ("-l", f"mem_free={need.memory}"),
    )  # fmt: skip
    requests: tuple[str, ...] = _need(
        (), "-l", "--request", metavar="NAME=VALUE", repeated=True,
        help="Request a resource, as with qsub -l. Repeatable.",
        qsub=lambda need: [part for request in need.requests for part in ("-l", request)],
    )  # fmt: skip
    slots: int = _need(
        1, "--slots", metavar="N", parse=int, help="Reserve this many slots. Default: 1.",
        qsub=lambda need: ("-pe", need.parallel_environment or "smp", str(need.slots)),
    )  # fmt: skip
    parallel_environment: str = _need(
        "", "--pe", metavar="NAME",
        help="Reserve the slots in this parallel environment. Default: smp, all slots on one host.",
        qsub=lambda need: ("-pe", need.parallel_environment, "1") if need.slots == 1 else (),
    )  # fmt: skip
    queue: str = _need(
        "", "-q", "--queue", metavar="QUEUE", help="Run in this queue. Default: any queue.",
        qsub=lambda need: ("-q", need.queue),
    )  # fmt: skip
    project: str = _need(
        "", "-P", "--project", metavar="PROJECT",
        help="Run in this Grid Engine project. Default: the default of the cell.",
        qsub=lambda need: ("-P", need.project),
    )  # fmt: skip
    options: tuple[str, ...] = _need(
        (), "--qsub", metavar="OPTIONS",
        help="Pass these options to qsub, e.g. '-p -10'. Default: none.",
        parse=lambda text: tuple(shlex.split(text)),
        qsub=lambda need: (),  # qsub_argv adds them last
    )  # fmt: skip


def needs() -> tuple[Need, ...]:
    """Return how each resource is requested, in the order of qsub's arguments."""
    return tuple(
        dataclasses.replace(field.metadata[_METADATA], name=field.name, default=field.default)
        for field in dataclasses.fields(Resources)
    )


def resource_argv(resources: Resources) -> list[str]:
    """Return the arguments of qsub that request ``resources``."""
    return [
        argument
        for need in needs()
        if getattr(resources, need.name) != need.default
        for argument in need.qsub(resources)
    ]


def parse_resources(texts: dict[str, Any]) -> Resources:
    """Return the resources that options request.

    Args:
        texts: Text or None by the name of the field; a list of texts if the option is repeatable.

    Raises:
        InputError: A text is invalid; the message names its option.
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
