"""The ways to run trials on each queue: ours and those of others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
_CONFIG = 'language: PYTHON\nname: "trial"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
_CODE = """
from benchmarks.peers.queue_trial import trial

def main(job_id, params):
    trial({records!r}, {seconds})
    return float(params["x"][0])
"""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to run.

    Attributes:
        folder: An empty directory of the user; trials append to its file ``records``.
        slots: Number of trials at the same time.
        peers: Python with the packages of the others.
    """

    queue: str
    folder: Path
    trials: int
    seconds: float
    slots: int
    peers: Path

    @property
    def records(self) -> Path:
        """The file of the times of the trials."""
        return self.folder / "records"

    def words(self) -> list[str]:
        """Return the arguments of the scripts in ``benchmarks/peers``."""
        return [str(self.folder), str(self.trials), str(self.seconds), str(self.slots)]


@dataclass(frozen=True)
class Way:
    """A way to run the trials of a task.

    Attributes:
        name: For the table.
        argv: Returns the command for a task, after writing the files that it needs.
        warms: Whether it first starts processes, whose start does not count.
    """

    name: str
    argv: Callable[[Task], list[str]]


def search(ahead: int) -> Callable[[Task], list[str]]:
    """Return the command of a search, with trials queued ahead."""

    def argv(task: Task) -> list[str]:
        (task.folder / "config.pb").write_text(_CONFIG)
        code = _CODE.format(records=str(task.records), seconds=task.seconds)
        (task.folder / "trial.py").write_text(code)
        limits = [f"--max-concurrent={task.slots}", f"--max-finished-jobs={task.trials}"]
        options = ["--gpus=0", "--method=RandomChooser", f"--queue-ahead={ahead}", *limits]
        return ["spearmint", f"--driver={task.queue}", *options, str(task.folder)]

    return argv


def executor(task: Task) -> list[str]:
    """Return the command of functions as jobs."""
    script = HERE / "peers" / "queue_executor.py"
    return [sys.executable, str(script), *task.words(), task.queue]


def peer(name: str, *more: str) -> Callable[[Task], list[str]]:
    """Return the command of a script in ``benchmarks/peers``."""

    def argv(task: Task) -> list[str]:
        return [str(task.peers), str(HERE / "peers" / f"{name}.py"), *task.words(), *more]

    return argv


def condor_submit(*more: str) -> Callable[[Task], list[str]]:
    """Return the command of a script that calls condor_submit."""

    def argv(task: Task) -> list[str]:
        script = HERE / "peers" / "queue_condor_submit.py"
        return [sys.executable, str(script), *task.words(), *more]

    return argv


OURS = (
    Way("search, queue-ahead 0", search(0)),
    Way("search, queue-ahead 8", search(8)),
    Way("spearmint.executor", executor),
)
WAYS: dict[str, tuple[Way, ...]] = {
    "SLURM": (
        *OURS,
        Way("submitit, an array", peer("queue_submitit", "array")),
        Way("submitit, one by one", peer("queue_submitit", "each")),
        Way("dask-jobqueue, a process for each slot", peer("queue_dask")),
    ),
    "HTCONDOR": (
        *OURS,
        Way("condor_submit in a loop", condor_submit("each")),
        Way("condor_submit, queue N", condor_submit("array")),
    ),
    "CELERY": (
        *OURS,
        Way("Celery, in the worker's process", peer("queue_celery", "here")),
        Way("Celery, a new Python for each trial", peer("queue_celery", "process")),
    ),
}
