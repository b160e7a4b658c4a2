"""The bash script of a job: where it runs and logs, its environment, and the trial's command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from spearmint.drivers.queue import SubmitSpec
from spearmint.errors import InputError
from spearmint.resources import Resources

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}
# A site has Lmod or Environment Modules; jobs without a login shell lack the function.
_MODULES = """\
if ! type module >/dev/null 2>&1; then
    for init in "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash" \\
        "${MODULESHOME:-/usr/share/modules}/init/bash" \\
        /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
        if [ -r "$init" ]; then . "$init"; break; fi
    done
fi"""
# A minute is longer than a failover of a file server.
_RETRY = """\
keep_trying() {{
    for _ in {{1..30}}; do "$@" 2>/dev/null && return; sleep 2; done
    "$@" && return
    {give_up}
}}"""


def job_script(spec: SubmitSpec, *, exports: Iterable[str], rerun: str, give_up: str) -> str:
    """Return a bash script that runs the command of ``spec``, whose process it replaces.

    Args:
        exports: Lines that set variables before those of ``spec``.
        rerun: Command that sends the job back to the queue.
        give_up: Line for a job without its directory or log after a minute.

    Raises:
        InputError: bash could not run it.
    """
    check_texts(spec)
    change = f"keep_trying cd {shlex.quote(str(spec.directory))}"
    lines = ["#!/bin/bash", _RETRY.format(give_up=give_up)]
    lines.append(f"open_log() {{ exec >>{shlex.quote(str(spec.output))}; }}")
    lines += ["keep_trying open_log", "exec 2>&1", change, *exports]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in spec.environment.items()]
    lines += setup_lines(spec.resources, change)
    shepherd = (spec.argv[0], "-P", "-m", "spearmint.trial.shepherd")
    lines.append(f"exec -- {shlex.join(shepherd)} {rerun} \\")
    lines.append(f"    {shlex.join(spec.argv)}")
    return "\n".join(lines) + "\n"


def setup_lines(need: Resources, change: str) -> list[str]:
    """Return the lines; none if the trial needs no preparation.

    Args:
        need: Names the modules, the virtual environment and the lines of the user.
        change: Changes to the working directory again, after the lines of the user.
    """
    lines = [_MODULES] if need.modules else []
    lines += [f"module load {shlex.quote(module)} || exit 1" for module in need.modules]
    if need.venv is not None:
        lines.append(f". {shlex.quote(str(need.venv / 'bin' / 'activate'))} || exit 1")
    return [*lines, *need.setup, change] if need.setup else lines


def check_texts(spec: SubmitSpec) -> None:
    """Raise InputError if bash could not set the variables or run the command of a job."""
    wrong = [
        f"cannot set environment variable {name!r}"
        for name in spec.environment
        if not _VARIABLE.fullmatch(name) or name in _SHELLS_OWN
    ]
    need = spec.resources
    texts = [*spec.argv, *need.modules, *need.setup, *spec.environment.values(), *need.options]
    if any("\0" in text for text in texts):
        wrong.append("an argument or variable contains a zero byte")
    if wrong:
        raise InputError(f"cannot submit job {spec.label!r}:\n  " + "\n  ".join(wrong))
