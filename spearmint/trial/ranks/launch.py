"""Run a trial in several processes by torchrun, from its runner."""

from __future__ import annotations

import os
import subprocess
import sys

from spearmint.layout import NODES, PROCESSES, TrialFolder
from spearmint.trial.environment import THREADS
from spearmint.trial.languages import Spec
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.outputs import Result
from spearmint.trial.ranks.ends import HostEnds, result_of
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.processes import end_descendants
from spearmint.trial.ranks.records import Records

# Between processes of one host, gloo, NCCL and TensorPipe need no other interface.
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def run_ranks(spec: Spec, folder: TrialFolder) -> Result:
    """Call ``main(job_id, params)`` in each process, and return the numbers of rank 0.

    Raises:
        BadResult: A rank failed; the reason names it.
    """
    n, nodes = int(spec[PROCESSES]), int(spec.get(NODES, 1))
    place = Place(str(folder.path / "ranks"), n, nodes=nodes)
    records = Records(folder, place)
    records.clear()
    _guarded(folder, place)
    host = os.uname().nodename if nodes > 1 else ""
    hosts = [HostEnds.of(records, n, host), *map(HostEnds.read, records.others())]
    return result_of(hosts, n * nodes)


def _guarded(folder: TrialFolder, place: Place) -> None:
    """Start the guard and wait until it and all its processes have ended."""
    adopt_orphans()
    n = place.processes
    argv = [sys.executable, "-P", "-m", "spearmint.trial.ranks.guard", str(folder.path), str(n)]
    # The guard inherits the lock of the GPU: it outlasts all that uses the GPU.
    guard = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        env=_environment(place),
        start_new_session=True,
        close_fds=False,
    )
    try:
        guard.wait()
    finally:
        guard.communicate()  # closes the pipe, and waits for the end
        end_descendants(0.0)  # if the guard was killed


def _environment(place: Place) -> dict[str, str]:
    """Return the environment of the ranks: each has its share of the cores."""
    n = place.processes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = {name: os.environ.get(name, str(cores)) for name in THREADS}
    shares = {
        name: str(max(1, int(value) // n)) for name, value in threads.items() if value.isdecimal()
    }
    if place.nodes > 1:  # the guard finds the interface towards the other hosts
        return {**os.environ, **shares, **place.variables()}
    return {**dict.fromkeys(_INTERFACES, "lo"), **os.environ, **shares}
