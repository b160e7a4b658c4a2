"""Options of ``submit`` and ``run`` that say what a job needs."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from pathlib import Path

from sge_jobs.errors import InputError
from sge_jobs.model import JobSpec, Resources

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what a job needs, and the program."""
    add = parser.add_argument
    add("-g", "--gpus", type=int, default=0, metavar="N", help="GPUs on one host (0)")
    add("--slots", type=int, default=1, metavar="N", help="slots on one host (1)")
    add("--pe", default="", metavar="NAME", help="parallel environment of the slots (smp)")
    add("-t", "--time", default="", metavar="TIME", help="end it after 90s, 10m, 2h, 1d, 1:30:00")
    add("-m", "--memory", default="", metavar="SIZE", help="memory the host must have free: 8G")
    add("-q", "--queue", default="", help="queue; default: any")
    add("-P", "--project", default="", help="project")
    add("-l", "--request", action="append", default=[], metavar="NAME=VALUE", help="as of qsub -l")
    add("--name", default="", help="name of the job; default: the program's")
    add("--directory", type=Path, default=Path(), metavar="DIR", help="where it starts (here)")
    add("--env", action="append", default=[], metavar="NAME[=VALUE]", help="variable of the job")
    add("--module", action="append", default=[], metavar="NAME", help="module to load first")
    add("--venv", type=Path, metavar="DIR", help="Python environment to activate first")
    add("--setup", action="append", default=[], metavar="LINE", help="line of shell to run first")
    add("--no-rerun", action="store_true", help="do not run it again when its host is lost")
    add("--qsub", default="", metavar="OPTIONS", help="further options of qsub, in quotes")
    add("-n", "--dry-run", action="store_true", help="print the qsub line and the script")
    add("program", metavar="PROGRAM", help="what to run, after --")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="its arguments")


def job_spec(arguments: argparse.Namespace, *, log: Path | None = None) -> JobSpec:
    """Return the job that the options describe; InputError where they are wrong."""
    argv = (arguments.program, *arguments.arguments)
    if not os.access(arguments.directory, os.X_OK) or not arguments.directory.is_dir():
        raise InputError(
            f"--directory={arguments.directory}: no such directory on this machine to enter",
            "Make it where every host sees it, or name another one.",
        )
    return JobSpec(
        name=arguments.name or Path(arguments.program).name,
        argv=argv,
        directory=arguments.directory.absolute(),
        log=log,
        resources=Resources(
            gpus=arguments.gpus,
            slots=arguments.slots,
            parallel_environment=arguments.pe,
            walltime_s=read_duration(arguments.time) if arguments.time else None,
            memory=arguments.memory,
            queue=arguments.queue,
            project=arguments.project,
            requests=tuple(arguments.request),
            options=_options(arguments.qsub),
        ),
        environment=dict(_variable(text) for text in arguments.env),
        modules=tuple(arguments.module),
        venv=arguments.venv.absolute() if arguments.venv else None,
        setup=tuple(arguments.setup),
        rerunnable=not arguments.no_rerun,
    )


def read_duration(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``10m``, ``2h``, ``1d`` or ``1:30:00``."""
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    if duration := _DURATION.fullmatch(text):
        return float(duration[1]) * _UNITS[duration[2] or "s"]
    raise InputError(f"--time={text}: must be like 90s, 10m, 2h, 1d or 1:30:00")


def _options(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"--qsub={text}: {error}") from error


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if given:
        return name, value
    if name not in os.environ:
        raise InputError(f"--env={name}: no such variable here", f"Give it: --env {name}=VALUE")
    return name, os.environ[name]
