"""Time from Ctrl-C to the end of a search, by the command and stand-ins for those of Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_STARTED_S = 600.0
_SETTLED_S = 15.0  # proposals ahead of need are computed
_MORE = 20  # trials that start when Ctrl-C comes
_REPEATS = 3
# Each job runs from its submission on; a line of the file `jobs` is what squeue lists.
_PROGRAMS = {
    "sbatch": """for word; do case $word in --job-name=*) label=${word#--job-name=};; esac; done
id=$(($(wc -l < "$jobs") + 1))
printf '%-24s%-24s%-12s%-256s%-64s%s\\n' $id RUNNING 0 node None "$label" >> "$jobs"
echo $id
""",
    "squeue": 'cat "$jobs"\n',
    "scancel": "exit 0\n",
}


def stop_seconds(folder: Path, url: str, running: int) -> dict[str, float]:
    """Return the longest time from Ctrl-C to the end, while all trials run and while some start.

    Args:
        folder: An empty directory.
        url: The storage, with a study that has no running trials.
        running: Number of trials that run.
    """
    (folder / "scale.py").write_text("def main(job_id, params):\n    return 0.0\n")
    jobs = folder / "jobs.txt"
    jobs.touch()
    for name, text in _PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\nset -eu\njobs='{jobs}'\n{text}")
        (folder / name).chmod(0o755)

    def count() -> int:
        return jobs.read_text().count("\n")

    def stopped(concurrent: int, until: Callable[[], bool], method: str = "") -> float:
        options = [f"--method={method}"] if method else []
        return _stopped(folder, [*options, f"--storage={url}"], concurrent, until)

    stopped(running, lambda: count() >= running, "RandomChooser")
    waiting = [stopped(running, _settled(folder / "log")) for _ in range(_REPEATS)]
    filling = []
    for _ in range(_REPEATS):
        known = count()
        filling.append(stopped(known + _MORE, lambda known=known: count() > known))
    return {"stop_s": max(waiting), "stop_starting_s": max(filling)}


def _settled(log: Path) -> Callable[[], bool]:
    """Return whether the search has begun a while ago."""
    begun: list[float] = []

    def is_settled() -> bool:
        if not begun and " at a time" in log.read_text():
            begun.append(time.monotonic())
        return bool(begun) and time.monotonic() - begun[0] > _SETTLED_S

    return is_settled


def _stopped(folder: Path, options: list[str], concurrent: int, until: Callable[[], bool]) -> float:
    """Start the search, press Ctrl-C when ``until`` returns true, and return how long it takes."""
    command = [sys.executable, "-m", "spearmint", "--driver=SLURM", "--gpus=0", *options]
    command += [f"--max-concurrent={concurrent}", "--max-finished-jobs=10000000", str(folder)]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    deadline = time.monotonic() + _STARTED_S
    while not until():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError((folder / "log").read_text())
        time.sleep(0.05)
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    if process.wait() != 130:
        raise RuntimeError((folder / "log").read_text())
    return time.perf_counter() - begin
