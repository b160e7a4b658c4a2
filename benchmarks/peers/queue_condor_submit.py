"""Trials as jobs of condor_submit: one call for each, or one for all."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.peers import queue_trial
from benchmarks.peers.queue_trial import arguments

_DESCRIPTION = """
executable = {python}
arguments = "{script} {records} {seconds}"
transfer_executable = false
should_transfer_files = NO
initialdir = {folder}
log = {folder}/log
output = {folder}/out.$(Cluster).$(Process)
error = {folder}/out.$(Cluster).$(Process)
request_cpus = 1
request_memory = 100
queue {count}
"""


def main(how: str) -> None:
    """Run the trials."""
    folder, trials, seconds, _ = arguments()
    calls, count = (1, trials) if how == "array" else (trials, 1)
    text = _DESCRIPTION.format(
        python=sys.executable,
        script=queue_trial.__file__,
        records=folder / "records",
        seconds=seconds,
        folder=folder,
        count=count,
    )
    for _ in range(calls):
        subprocess.run(["condor_submit", "-terse", "-"], input=text, text=True, check=True)
    subprocess.run(["condor_wait", str(folder / "log")], check=True)


if __name__ == "__main__":
    main(sys.argv[5])
