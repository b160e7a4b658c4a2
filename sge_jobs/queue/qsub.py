"""The arguments of qsub and the job script for a job."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from sge_jobs.errors import InputError
from sge_jobs.exit_codes import JOB_ERROR, RESCHEDULE
from sge_jobs.model import JobSpec
from sge_jobs.node.failed_start import LOG, pack
from sge_jobs.resources import read_gpus, resource_argv

_NAME_LIMIT = 120  # Grid Engine allows 512; the name of the log has a limit too
_FORBIDDEN_NAMES = {"none", "all", "template"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}
_TASKS = re.compile(r"(?P<first>[1-9]\d*)(-(?P<last>[1-9]\d*)(:[1-9]\d*)?)?", re.ASCII)
# A minute is longer than a failover of a file server. After it, the job goes back to the queue,
# perhaps for another host. The second time, it goes into the error state. If its log cannot be
# opened, the message goes to a file in the home directory.
_KEEP_TRYING = f"""\
keep_trying() {{
    for _ in {{1..30}}; do "$@" 2>/dev/null && return; sleep 2; done
    "$@" && return
    [ "${{RESTARTED-}}" = 1 ] || exit {RESCHEDULE}
    if [ /dev/stderr -ef /dev/null ]; then exec 2>>"$HOME/$JOB_NAME.o$JOB_ID"; fi
    "$@" && return
    echo "Job ${{JOB_ID-}} on $(uname -n): failed for a minute, twice." >&2
    exit {JOB_ERROR}
}}"""
_MODULE_INIT = """\
if ! type module >/dev/null 2>&1; then
    for init in "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash" \\
        "${MODULESHOME:-/usr/share/modules}/init/bash" \\
        /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
        if [ -r "$init" ]; then . "$init"; break; fi
    done
fi"""


def job_name(text: str) -> str:
    """Return a name that Grid Engine accepts, always the same for the same ``text``.

    A valid name is returned unchanged. Any other text is converted to ASCII and gets a hash at its
    end, so that different texts have different names.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_.+=,-]+", "_", plain)
    if not name or not (name[0].isalpha() or name[0] == "_"):
        name = f"_{name}"
    if name == text and len(name) <= _NAME_LIMIT and name.lower() not in _FORBIDDEN_NAMES:
        return name
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{name[:_NAME_LIMIT]}-{digest}"


def qsub_argv(spec: JobSpec) -> list[str]:
    """Return the arguments of ``qsub``, which reads the script from its standard input.

    Raises:
        InputError: Grid Engine could not run the job.
    """
    _check(spec)
    # Override options that users may have in .sge_request, such as -b y or -o.
    argv = ["-terse", "-b", "n", "-C", "", "-N", job_name(spec.name)]
    argv += ["-S", "/bin/bash"]
    argv += ["-r", "y" if spec.rerunnable else "n", "-j", "y"]
    if spec.log is None:
        argv += ["-o", ".", "-wd", str(spec.directory)]
    else:
        # The script itself changes the directory and opens the log. If this fails, the job can go
        # to another host; Grid Engine would put it into state E until a user clears it. The starter
        # also writes to the log, if it cannot start the script.
        argv += ["-o", "/dev/null", "-wd", "/", "-v", f"{LOG}={pack(str(spec.log))}"]
    argv += resource_argv(spec.resources)
    if spec.tasks:
        argv += ["-t", spec.tasks]
        if spec.concurrent_tasks is not None:
            argv += ["-tc", str(spec.concurrent_tasks)]
    return [*argv, *spec.resources.options]


def job_script(spec: JobSpec) -> str:
    """Return the bash script that runs ``spec`` on a node.

    The log of an array task ends in its number: ``output.txt.7``. The script retries for a minute
    to open the log and to enter the directory. If this fails, the job goes back to the queue once.
    After a second minute, it goes into the error state.

    Raises:
        InputError: Grid Engine could not run the job.
    """
    _check(spec)
    change = f"keep_trying cd {shlex.quote(str(spec.directory))}"
    lines = ["#!/bin/bash", f"unset {LOG}", _KEEP_TRYING]
    if spec.log is not None:
        task = '."$SGE_TASK_ID"' if spec.tasks else ""
        lines.append(f"open_log() {{ exec >>{shlex.quote(str(spec.log))}{task}; }}")
        lines += ["keep_trying open_log", "exec 2>&1"]
    lines.append(change)
    lines += [f"export {name}={shlex.quote(value)}" for name, value in spec.environment.items()]
    if spec.modules:
        lines.append(_MODULE_INIT)
        lines += [f"module load {shlex.quote(module)} || exit 1" for module in spec.modules]
    if spec.venv is not None:
        lines.append(f". {shlex.quote(str(spec.venv / 'bin' / 'activate'))} || exit 1")
    if spec.setup:
        lines += [*spec.setup, change]
    lines.append(f"exec -- {shlex.join(spec.argv)}")
    return "\n".join(lines) + "\n"


def _check(spec: JobSpec) -> None:
    wrong = [*_wrong_values(spec), *_wrong_variables(spec.environment)]
    wrong += [f"{what} {path} must be absolute" for what, path in _relative_paths(spec)]
    texts = [*spec.argv, *spec.modules, *spec.setup, *spec.environment.values()]
    texts += [str(path) for path in (spec.directory, spec.log, spec.venv) if path is not None]
    if any("\0" in text for text in texts):
        wrong.append("an argument, path or variable contains a zero byte")
    if wrong:
        raise InputError(f"cannot submit job {spec.name!r}:\n  " + "\n  ".join(wrong))


def _wrong_values(spec: JobSpec) -> list[str]:
    wrong: list[str] = []
    resources = spec.resources
    if not spec.argv or not spec.argv[0]:
        wrong.append("no program to run: argv is empty")
    try:
        read_gpus(resources.gpus)
    except ValueError as error:
        wrong.append(f"gpus is {resources.gpus}, {error}")
    if resources.slots < 1:
        wrong.append(f"slots is {resources.slots}, must be at least 1")
    walltime = resources.walltime_s
    if walltime is not None and not (math.isfinite(walltime) and walltime > 0):
        wrong.append(f"walltime is {walltime} s, must be above 0")
    return wrong + _wrong_tasks(spec)


def _wrong_tasks(spec: JobSpec) -> list[str]:
    wrong: list[str] = []
    match = _TASKS.fullmatch(spec.tasks)
    if spec.tasks and not match:
        wrong.append(f"tasks is {spec.tasks!r}, expected e.g. 1-41 or 1-41:2")
    if match and match["last"] and int(match["first"]) > int(match["last"]):
        wrong.append(f"tasks is {spec.tasks!r}: the first number is above the last")
    if spec.concurrent_tasks is not None and spec.concurrent_tasks < 1:
        wrong.append(f"concurrent tasks is {spec.concurrent_tasks}, must be at least 1")
    elif spec.concurrent_tasks is not None and not spec.tasks:
        wrong.append("concurrent tasks limits the tasks of an array: give tasks, e.g. 1-41")
    return wrong


def _wrong_variables(environment: Mapping[str, str]) -> list[str]:
    wrong = [name for name in environment if not _VARIABLE.fullmatch(name) or name in _SHELLS_OWN]
    return [f"cannot set environment variable {name!r}" for name in wrong]


def _relative_paths(spec: JobSpec) -> list[tuple[str, Path]]:
    paths = {"directory": spec.directory, "log": spec.log, "venv": spec.venv}
    return [(what, path) for what, path in paths.items() if path and not path.is_absolute()]
