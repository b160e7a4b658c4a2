"""The starter of every job: read which GPUs root assigned to the job, then execute it.

It is the ``starter_method`` of a queue, and a process of the user. If it fails, its exit code tells
Grid Engine what to do next, see :mod:`sge_jobs.exit_codes`.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import SIG_DFL, SIGPIPE, SIGXFSZ, signal  # type: ignore[import-not-found]

from sge_jobs.exit_codes import JOB_ERROR, RESCHEDULE
from sge_jobs.node.claim import command
from sge_jobs.node.claim.answer import Answer, read_answer
from sge_jobs.node.claim.processes import read_process, shepherd_of
from sge_jobs.node.claim.profile import after_profile
from sge_jobs.node.failed_start import tell
from sge_jobs.node.gpus import inventory
from sge_jobs.node.queries import QueryFailed, retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn


_ANSWER_S = 90.0
_SOON_S = 2.0
_PAUSE_S = 0.01
_QSTAT_S = 60.0


def main(args: Sequence[str], locale: str = "", answer_s: float = _ANSWER_S) -> NoReturn:
    """Execute the job whose command is ``args`` with its GPUs.

    Args:
        locale: ``=VALUE`` of the job's LC_CTYPE, which Python may change; empty if it is not set.
        answer_s: Timeout for the assignment of GPUs.
    """
    environment = clean_environment(os.environ, locale)
    if not args:
        _end(
            "missing command: only Grid Engine runs this program, as the starter_method of a queue",
            2,
        )
    try:
        config = read_job_config(environment)
        answer = assigned(environment, answer_s)
    except Exception as error:  # noqa: BLE001 (the job must not run without its GPUs)
        _refuse(f"cannot assign GPUs: {type(error).__name__}: {error}", JOB_ERROR, environment)
    if answer.code:
        _refuse(answer.what, answer.code, environment)
    gpus = {"CUDA_VISIBLE_DEVICES": ",".join(answer.gpus), **answer.variables}
    environment.update(gpus)
    environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    job = command.job_command(args, environment, config, _login_shell(environment))
    become(after_profile(job, environment, gpus), environment)


def assigned(environment: Mapping[str, str], answer_s: float) -> Answer:
    """Return what the sensor answered to this job; a job without GPUs can run without it."""
    spool, job = environment.get("SGE_JOB_SPOOL_DIR", ""), environment.get("JOB_ID", "")
    answer = _wait(spool, min(_SOON_S, answer_s))
    if answer is not None or not job.isdigit():
        return answer or Answer()
    try:
        if not _requests_gpus(job, environment):
            return Answer()
    except QueryFailed as error:
        what = f"cannot find out how many GPUs job {job} requested: {error}"
        return Answer(code=RESCHEDULE, what=f"{what}\nThe job goes back to the queue.")
    answer = _wait(spool, answer_s)
    if answer is not None:
        return answer
    what = (
        f"the sensor of this host did not assign GPUs to job {job} within {answer_s:g} s.\n"
        "The job goes back to the queue. Show the problems: sge-jobs check"
    )
    return Answer(code=RESCHEDULE, what=what)


def _wait(spool: str, seconds: float) -> Answer | None:
    until = time.monotonic() + seconds
    shepherd = shepherd_of(read_process(os.getppid()))
    while True:
        answer = read_answer(spool)
        # Grid Engine can give the directory of an earlier run to a job that it reruns.
        if answer is not None and (shepherd is None or answer.shepherd == shepherd.pid):
            return answer
        if time.monotonic() >= until:
            return None
        time.sleep(_PAUSE_S)


def _requests_gpus(job: str, environment: Mapping[str, str]) -> bool:
    from sge_jobs.node.claim.request import query_request  # not needed if there is an answer

    return bool(retry(lambda: query_request(job, environment).gpus, _QSTAT_S))


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
    if job.stdin:
        os.dup2(job.stdin, 0)
        os.close(job.stdin)
    try:
        os.execvpe(job.program, job.argv, environment)  # noqa: S606 (the starter must become the job)
    except OSError as error:
        if error.errno != 8:  # ENOEXEC: a script without #!
            _end(f"cannot run {job.program}: {error.strerror}", JOB_ERROR)
    argv = ["/bin/sh", job.program, *job.argv[1:]]
    os.execve("/bin/sh", argv, environment)  # noqa: S606


def _refuse(what: str, code: int, environment: Mapping[str, str]) -> NoReturn:
    try:
        tell(what, environment)
    finally:
        os._exit(code)


def _end(what: str, code: int) -> NoReturn:
    sys.stderr.write(f"sge-jobs: {what}\n")
    sys.stderr.flush()
    os._exit(code)
