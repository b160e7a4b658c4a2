"""Options of ``submit`` and ``run`` that say what a job needs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from sge_jobs.errors import InputError
from sge_jobs.model import JobSpec
from sge_jobs.resources import needs, parse_resources


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what a job needs, and the program."""
    add = parser.add_argument
    for need in needs():
        how: dict[str, Any] = {"default": [], "action": "append"} if need.repeated else {}
        if need.parse is int:
            how["type"] = int
        add(*need.flags, dest=need.name, metavar=need.metavar, help=need.help, **how)
    add("--name", default="", help="name of the job; default: the program's")
    add("--directory", type=Path, default=Path(), metavar="DIR", help="where it starts (here)")
    add("--env", action="append", default=[], metavar="NAME[=VALUE]", help="variable of the job")
    add("--module", action="append", default=[], metavar="NAME", help="module to load first")
    add("--venv", type=Path, metavar="DIR", help="Python environment to activate first")
    add("--setup", action="append", default=[], metavar="LINE", help="line of shell to run first")
    add("--no-rerun", action="store_true", help="do not run it again when its host is lost")
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
        resources=parse_resources(vars(arguments)),
        environment=dict(_variable(text) for text in arguments.env),
        modules=tuple(arguments.module),
        venv=arguments.venv.absolute() if arguments.venv else None,
        setup=tuple(arguments.setup),
        rerunnable=not arguments.no_rerun,
    )


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if given:
        return name, value
    if name not in os.environ:
        raise InputError(f"--env={name}: no such variable here", f"Give it: --env {name}=VALUE")
    return name, os.environ[name]
