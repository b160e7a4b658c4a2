"""The starter of every job: claim the GPUs it asked for, then become the job.

A queue's ``starter_method``. It exits with Grid Engine's codes, see :mod:`sge_jobs.exit_codes`.
"""

from __future__ import annotations

import os
import sys
from _signal import SIG_DFL, SIGPIPE, SIGXFSZ, signal  # type: ignore[import-not-found]

from sge_jobs.exit_codes import JOB_ERROR
from sge_jobs.node.claim import command
from sge_jobs.node.claim.assignment import NodeSettings, Refused, assign
from sge_jobs.node.gpus import inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn


def main(args: Sequence[str], locale: str = "", settings: NodeSettings | None = None) -> NoReturn:
    """Become the job whose command is ``args``.

    Args:
        locale: ``=VALUE`` of the job's LC_CTYPE, empty when it has none: Python may change it.
    """
    environment = clean_environment(os.environ, locale)
    if not args:
        _end("no command: this program is a queue's starter_method", 2)
    try:
        config = read_job_config(environment)
        devices = assign(environment, config, settings or NodeSettings())
    except Refused as refusal:
        _end(refusal.what, refusal.code)
    except Exception as error:  # noqa: BLE001 (whatever it is, the job must not run without its GPU)
        _end(f"failed to assign GPUs: {type(error).__name__}: {error}", JOB_ERROR)
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    become(command.job_command(args, environment, config, _login_shell(environment)), environment)


def clean_environment(environment: Mapping[str, str], locale: str) -> dict[str, str]:
    """Return the job's own variables, without what the launcher and Python added."""
    own = dict(environment)
    own.pop("LC_CTYPE", None)
    if locale:
        own["LC_CTYPE"] = locale[1:]
    if own.get("SHLVL") == "0":
        for name in ("SHLVL", "_", "OLDPWD"):
            own.pop(name, None)
    return own


def read_job_config(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the ``config`` file of the job that runs; empty where there is none."""
    try:
        path = environment["SGE_JOB_SPOOL_DIR"] + "/config"
        return command.parse_config(inventory.read_text(path, 1 << 22))
    except (KeyError, OSError):
        return {}


def _login_shell(environment: Mapping[str, str]) -> str:
    if environment.get(command.SHELL) != "":
        return "/bin/sh"
    import pwd  # asks the network on some sites, and only qrsh needs it

    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def become(job: command.Command, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the job. Ends with 100 where that fails, as Grid Engine would."""
    for number in (SIGPIPE, SIGXFSZ):  # Python ignores both
        signal(number, SIG_DFL)
    try:
        os.execvpe(job.program, job.argv, environment)  # noqa: S606 (becoming the job is the point)
    except OSError as error:
        if error.errno != 8:  # ENOEXEC: a script without its first line
            _end(f"cannot run {job.program}: {error.strerror}", JOB_ERROR)
    argv = ["/bin/sh", job.program, *job.argv[1:]]
    os.execve("/bin/sh", argv, environment)  # noqa: S606


def _end(what: str, code: int) -> NoReturn:
    sys.stderr.write(f"sge-jobs: {what}\n")
    sys.stderr.flush()
    os._exit(code)
