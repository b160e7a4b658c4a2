"""Where the files of a search lie: beside its config.pb."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one search; ``root`` is the directory of config.pb.

    The searches of several regions share database, lock and report; each has its trials and its
    records in ``regions/REGION``.
    """

    root: Path
    region: str = ""

    @property
    def base(self) -> Path:
        """Where this region's trials and records lie."""
        return self.regions / self.region if self.region else self.root

    @property
    def regions(self) -> Path:
        """Holds a folder a region, where there are regions."""
        return self.root / "regions"

    @property
    def database(self) -> Path:
        """SQLite file of the default storage."""
        return self.root / "spearmint.db"

    @property
    def lock(self) -> Path:
        """Held by the controller as long as it lives."""
        return self.root / ".spearmint" / "lock"

    @property
    def experiment(self) -> Path:
        """Names the experiment and the storage that the directory belongs to."""
        return self.root / ".spearmint" / "experiment.json"

    @property
    def done_markers(self) -> Path:
        """Where trials on other hosts signal that their result is written."""
        return self.root / ".spearmint" / "ended"

    @property
    def pending(self) -> Path:
        """Trials that wait for a pilot job to run them."""
        return self.root / ".spearmint" / "tickets"

    @property
    def submit_lock(self) -> Path:
        """Held while a job is being submitted."""
        return self.root / ".spearmint" / "submit.lock"

    @property
    def jobs(self) -> Path:
        """Holds one folder a trial."""
        return self.base / "jobs"

    @property
    def outputs(self) -> Path:
        """Holds the standard output and error of each trial."""
        return self.base / "output"

    @property
    def trace(self) -> Path:
        """Progress of the search, a line a change."""
        return self.base / "trace.csv"

    @property
    def best(self) -> Path:
        """The best trial, in the original's format."""
        return self.base / "best_job_and_result.txt"

    @property
    def report(self) -> Path:
        """HTML report and plots."""
        return self.root / "report"

    def folder(self, trial_id: int) -> TrialFolder:
        """Return the folder of a trial; it may not exist yet."""
        return TrialFolder(self.jobs / f"{trial_id:08d}")

    def output(self, trial_id: int) -> Path:
        """Return the file with a trial's output."""
        return self.outputs / f"{trial_id:08d}.out"


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """What controller and runner tell each other about one trial, as files."""

    path: Path

    @property
    def spec(self) -> Path:
        """What to run: written by the controller, read by the runner."""
        return self.path / "trial.json"

    @property
    def result(self) -> Path:
        """What came out: written by the runner, by rename."""
        return self.path / "result.json"

    @property
    def runner(self) -> Path:
        """Process of the runner: its id and start, written when it starts."""
        return self.path / "runner.json"

    @property
    def lock(self) -> Path:
        """Held from before the runner starts until its last process is gone."""
        return self.path / "lock"

    @property
    def reports(self) -> Path:
        """Values reported on the way: a line ``step,value`` each."""
        return self.path / "reports.csv"

    @property
    def files(self) -> Path:
        """For the trial's own files."""
        return self.path / "files"

    @property
    def params(self) -> Path:
        """The parameters as JSON, for SHELL."""
        return self.path / "params.json"

    @property
    def value(self) -> Path:
        """Where a SHELL trial writes its result."""
        return self.path / "value.txt"


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write ``text`` to ``path`` by rename: readers see the old file or the new one, whole.

    Each file has one writer at a time; what a killed one left beside is overwritten.

    Args:
        durable: Wait for the disk, so that a power cut cannot tear it.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def write_json(path: Path, data: object, *, durable: bool = False) -> None:
    """Write ``data`` to ``path`` as :func:`write_text` does."""
    write_text(path, json.dumps(data), durable=durable)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in ``path``; None when there is none, or a power cut tore the file."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return data if isinstance(data, dict) else None
