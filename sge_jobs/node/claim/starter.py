"""The starter of every job: claim the requested GPUs, then execute the job.

It is the ``starter_method`` of a queue. If it fails, its exit code tells Grid Engine what to do
next, see :mod:`sge_jobs.exit_codes`.
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
    """Claim GPUs, then execute the job whose command is ``args``.

    Args:
        locale: ``=VALUE`` of the job's LC_CTYPE, which Python may change; empty if it is not set.
    """
    environment = clean_environment(os.environ, locale)
    if not args:
        _end(
            "missing command: only Grid Engine runs this program, as the starter_method of a queue",
            2,
        )
    try:
        config = read_job_config(environment)
        devices = assign(environment, config, settings or NodeSettings())
    except Refused as refusal:
        _end(refusal.what, refusal.code)
    except Exception as error:  # noqa: BLE001 (the job must not run without its GPUs)
        _end(f"cannot assign GPUs: {type(error).__name__}: {error}", JOB_ERROR)
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    become(command.job_command(args, environment, config, _login_shell(environment)), environment)


def clean_environment(environment: Mapping[str, str], locale: str) -> dict[str, str]:
    """Return the variables of the job, without those that the launcher and Python added."""
    own = dict(environment)
    own.pop("LC_CTYPE", None)
    if locale:
        own["LC_CTYPE"] = locale[1:]
    if own.get("SHLVL") == "0":
        for name in ("SHLVL", "_", "OLDPWD"):
            own.pop(name, None)
    return own


def read_job_config(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the ``config`` file of the job; empty if it cannot be read."""
    try:
        path = environment["SGE_JOB_SPOOL_DIR"] + "/config"
        return command.parse_config(inventory.read_text(path, 1 << 22))
    except (KeyError, OSError):
        return {}


def _login_shell(environment: Mapping[str, str]) -> str:
    if environment.get(command.SHELL) != "":
        return "/bin/sh"
    import pwd  # only qrsh needs it, and it can query the network

    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def become(job: command.Command, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the job. If this fails, exit with 100, as Grid Engine does."""
    for number in (SIGPIPE, SIGXFSZ):  # Python ignores both
        signal(number, SIG_DFL)
    try:
        os.execvpe(job.program, job.argv, environment)  # noqa: S606 (the starter must become the job)
    except OSError as error:
        if error.errno != 8:  # ENOEXEC: a script without #!
            _end(f"cannot run {job.program}: {error.strerror}", JOB_ERROR)
    argv = ["/bin/sh", job.program, *job.argv[1:]]
    os.execve("/bin/sh", argv, environment)  # noqa: S606


def _end(what: str, code: int) -> NoReturn:
    sys.stderr.write(f"sge-jobs: {what}\n")
    sys.stderr.flush()
    os._exit(code)
