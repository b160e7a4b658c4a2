"""Run a trial in several processes by torchrun, from its runner."""

from __future__ import annotations

import os
import subprocess
import sys

from spearmint.layout import PROCESSES, TrialFolder
from spearmint.trial.environment import THREADS
from spearmint.trial.gpu_memory import OUT_OF_MEMORY
from spearmint.trial.languages import Spec
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.outputs import BadResult, Result
from spearmint.trial.ranks.processes import end_descendants
from spearmint.trial.ranks.records import Records, first_failure

# Between processes of one host, gloo, NCCL and TensorPipe need no other interface.
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def run_ranks(spec: Spec, folder: TrialFolder) -> Result:
    """Call ``main(job_id, params)`` in each process, and return the numbers of rank 0.

    Raises:
        BadResult: A rank failed; the reason names it.
    """
    n, records = int(spec[PROCESSES]), Records(folder)
    records.clear()
    _guarded(folder, n)
    lost, stopped = records.stop()
    ends = records.ends(n, before=stopped)
    failed = first_failure([*ends, *records.late_deaths(n)])
    if failed is not None and not (failed.is_consequence and lost):
        details = {OUT_OF_MEMORY: True} if failed.is_out_of_memory else {}
        raise BadResult(failed.describe(n), **details)
    if lost:
        raise BadResult(f"rank {lost[0]} of {n} was killed with the process that started it")
    if reason := records.launch_failure():
        raise BadResult(reason)
    if len(ends) < n:
        raise BadResult("torchrun ended before all ranks returned from main; see the output")
    return ends[0].outcome


def _guarded(folder: TrialFolder, n: int) -> None:
    """Start the guard and wait until it and all its processes have ended."""
    adopt_orphans()
    argv = [sys.executable, "-P", "-m", "spearmint.trial.ranks.guard", str(folder.path), str(n)]
    # The guard inherits the lock of the GPU: it outlasts all that uses the GPU.
    guard = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        env=_environment(n),
        start_new_session=True,
        close_fds=False,
    )
    try:
        guard.wait()
    finally:
        guard.communicate()  # closes the pipe, and waits for the end
        end_descendants(0.0)  # if the guard was killed


def _environment(n: int) -> dict[str, str]:
    """Return the environment of the ranks: each has its share of the cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = {name: os.environ.get(name, str(cores)) for name in THREADS}
    shares = {
        name: str(max(1, int(value) // n)) for name, value in threads.items() if value.isdecimal()
    }
    return {**dict.fromkeys(_INTERFACES, "lo"), **os.environ, **shares}
