"""Options that ``submit`` and ``run`` share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from sge_jobs.cli.help import first_group
from sge_jobs.errors import InputError
from sge_jobs.model import JobSpec
from sge_jobs.resources import needs, parse_resources


def add_job_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the resources of a job and its program; return the group of common options."""
    parser.usage = f"{parser.prog} [OPTIONS] -- PROGRAM [ARGUMENT ...]"
    program = parser.add_argument_group("Program")
    program.add_argument("program", metavar="PROGRAM", help="Program to run, after --.")
    program.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="Arguments of the program."
    )
    common = first_group(parser, "Common options")
    resources = parser.add_argument_group("Resources")
    for need in needs():
        how: dict[str, Any] = {"default": [], "action": "append"} if need.repeated else {}
        if need.parse is int:
            how["type"] = int
        group = common if need.common else resources
        group.add_argument(*need.flags, dest=need.name, metavar=need.metavar, help=need.help, **how)
    add = common.add_argument
    add("--name", default="", help="Name of the job. Default: the name of the program.")
    add(
        "-n",
        "--dry-run",
        action="store_true",
        help="Print the qsub command and the job script; submit nothing.",
    )
    add = parser.add_argument_group("Environment of the program").add_argument
    help = "Start the program in this directory. Default: the current directory."
    add("--directory", type=Path, default=Path(), metavar="DIR", help=help)
    help = "Set a variable; without a value, copy it from this shell. Repeatable."
    add("--env", action="append", default=[], metavar="NAME[=VALUE]", help=help)
    help = "Load this environment module first. Repeatable."
    add("--module", action="append", default=[], metavar="NAME", help=help)
    help = "Activate this Python virtual environment first. Default: none."
    add("--venv", type=Path, metavar="DIR", help=help)
    help = "Run this line of bash first. Repeatable."
    add("--setup", action="append", default=[], metavar="LINE", help=help)
    help = "Do not rerun the job after its host is lost."
    parser.add_argument_group("Failures").add_argument("--no-rerun", action="store_true", help=help)
    return common


def job_spec(arguments: argparse.Namespace, *, log: Path | None = None) -> JobSpec:
    """Return the job that the options describe; InputError if one is invalid."""
    argv = (arguments.program, *arguments.arguments)
    if not os.access(arguments.directory, os.X_OK) or not arguments.directory.is_dir():
        raise InputError(
            f"--directory={arguments.directory}: you cannot enter this directory on this machine",
            "Create it on a file system that every host shares, or give another one.",
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
        raise InputError(f"--env={name}: not set in this shell", f"Give it: --env {name}=VALUE")
    return name, os.environ[name]
