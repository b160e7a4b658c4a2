"""What each trial needs of a queue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a driver with a queue asks for, for each trial.

    Attributes:
        gpus: GPUs of one host.
        slots: Slots, CPU cores mostly; also the threads of numerical libraries.
        parallel_environment: Where several slots come from; empty for ``smp``.
        walltime_s: Seconds until the queue ends the job; its trial is broken then. None for any.
        memory: Memory a host must have free, such as ``8G``.
        queue, project: Empty for the queue's default.
        requests: Further resources, ``name=value`` each.
        options: Further arguments of the submit command, as they are.
        environment: Variables of the job, ``(name, value)`` each.
        modules: Environment modules to load.
        venv: Python environment whose interpreter runs the trial; None for the controller's.
        setup: Lines of shell to run first.
    """

    gpus: int = 1
    slots: int = 1
    parallel_environment: str = ""
    walltime_s: float | None = None
    memory: str = ""
    queue: str = ""
    project: str = ""
    requests: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()
    venv: Path | None = None
    setup: tuple[str, ...] = ()


def split_variable(text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``.

    Raises:
        ValueError: It is not of this form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or not name.isascii():
        raise ValueError(f"{text!r} is no variable; expected NAME=VALUE")
    return name, value
