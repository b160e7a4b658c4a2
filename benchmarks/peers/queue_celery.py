"""Trials as tasks of plain Celery, as its documentation advises for long tasks.

Its worker acknowledges late and takes one task at a time in each of its processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from celery import Celery, group

from benchmarks.peers import queue_trial

_BROKER = Path("~/.config/spearmint/broker.toml").expanduser()
URL = os.environ.get("URL") or tomllib.loads(_BROKER.read_text())["url"]

app = Celery("queue_celery", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_default_queue="plain",
)


@app.task(name="here")
def here(records: str, seconds: float) -> float:
    """Run a trial in the process of the worker."""
    return queue_trial.trial(records, seconds)


@app.task(name="process")
def process(records: str, seconds: float) -> None:
    """Run a trial in a new process, as one with a GPU or native code needs."""
    argv = [sys.executable, queue_trial.__file__, records, str(seconds)]
    subprocess.run(argv, check=True)


def main(how: str) -> None:
    """Start a worker, wait for it, and run the trials."""
    folder, trials, seconds, slots = queue_trial.arguments()
    options = ["--concurrency", str(slots), "--without-gossip", "--without-mingle", "-O", "fair"]
    argv = [sys.executable, "-m", "celery", "-A", "benchmarks.peers.queue_celery", "worker"]
    with (folder / "worker.log").open("w") as log:
        worker = subprocess.Popen([*argv, *options], stdout=log, stderr=log, cwd=folder)
    try:
        while not app.control.ping(timeout=0.5):
            continue
        task = {"here": here, "process": process}[how]
        records = str(folder / "records")
        group(task.s(records, seconds) for _ in range(trials)).apply_async().get()
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main(sys.argv[5])
