"""Paths of the files of a search, which are next to its config.pb."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROCESSES = "processes"
"""Key of trial.json: processes that torchrun starts on a host; absent for one process."""

NODES = "nodes"
"""Key of trial.json: number of hosts, each with that many processes; absent for one host."""

STEPS = "steps"
"""Key of trial.json: steps before and after this part of the trial; absent without rungs."""

BATCH = "batch"
"""Key of trial.json of a job of several trials: their numbers."""

SPECS = "trials"
"""Key of trial.json of such a job: trial.json of each trial, for hosts that have only the job."""

JOB = "job"
"""Key of trial.json of a trial in such a job: the first of these numbers."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one search; ``root`` is the directory of config.pb.

    All regions share the database, the lock and the report. The trials and records of a region are
    in ``regions/REGION``.
    """

    root: Path
    region: str = ""

    @property
    def base(self) -> Path:
        """Directory of the trials and records of this region."""
        return self.regions / self.region if self.region else self.root

    @property
    def regions(self) -> Path:
        """Directory with one folder per region, if there are regions."""
        return self.root / "regions"

    @property
    def database(self) -> Path:
        """SQLite file of the default storage."""
        return self.root / "spearmint.db"

    @property
    def lock(self) -> Path:
        """Lock that the controller holds while it runs."""
        return self.root / ".spearmint" / "lock"

    @property
    def experiment(self) -> Path:
        """File with the experiment and the storage that the directory belongs to."""
        return self.root / ".spearmint" / "experiment.json"

    @property
    def budget(self) -> Path:
        """File with the time of the first start with a budget."""
        return self.root / ".spearmint" / "budget.json"

    @property
    def done_markers(self) -> Path:
        """Directory of done markers, by which trials on other hosts signal their results."""
        return self.root / ".spearmint" / "ended"

    @property
    def pending(self) -> Path:
        """Directory of pending trials, which pilot jobs run."""
        return self.root / ".spearmint" / "tickets"

    @property
    def avoided_hosts(self) -> Path:
        """Hosts that trials avoid because jobs could not start there."""
        return self.root / ".spearmint" / "hosts.json"

    @property
    def transfer(self) -> Path:
        """Directory of what goes to hosts that do not share this directory, and comes back."""
        return self.root / ".spearmint" / "transfer"

    @property
    def requests(self) -> Path:
        """Directory of requests about single trials that are not applied yet."""
        return self.root / ".spearmint" / "requests"

    @property
    def submit_lock(self) -> Path:
        """Lock that is held while a job is submitted."""
        return self.root / ".spearmint" / "submit.lock"

    @property
    def jobs(self) -> Path:
        """Directory with one folder per trial."""
        return self.base / "jobs"

    @property
    def batches(self) -> Path:
        """Directory with one folder per job of several trials, named by the first of them."""
        return self.base / "batches"

    @property
    def outputs(self) -> Path:
        """Directory with the standard output and error of each trial."""
        return self.base / "output"

    @property
    def finals(self) -> Path:
        """Directory with one folder and one output file per final training."""
        return self.base / "final"

    @property
    def generations(self) -> Path:
        """Directory with one folder per finished generation of the search."""
        return self.root / "generations"

    def generation(self, number: int) -> Path:
        """Return the folder of a finished generation, which does not have to exist."""
        return self.generations / f"{number:08d}"

    @property
    def turnover(self) -> Path:
        """What to do to begin the next generation; exists only until that is done."""
        return self.root / ".spearmint" / "again.json"

    @property
    def models(self) -> Path:
        """Directory with one folder per region, or search, for its final models."""
        return self.root / "models"

    def final(self, version: int) -> TrialFolder:
        """Return the folder of a final training, which does not have to exist."""
        return TrialFolder(self.finals / f"{version:08d}")

    def final_output(self, version: int) -> Path:
        """Return the output file of a final training."""
        return self.finals / f"{version:08d}.out"

    @property
    def trace(self) -> Path:
        """Progress of the search, one line per change."""
        return self.base / "trace.csv"

    @property
    def best(self) -> Path:
        """The best trial, in the original's format."""
        return self.base / "best_job_and_result.txt"

    @property
    def report(self) -> Path:
        """Directory of the HTML report and its plots."""
        return self.root / "report"

    def folder(self, trial_id: int) -> TrialFolder:
        """Return the folder of a trial, which does not have to exist."""
        return TrialFolder(self.jobs / f"{trial_id:08d}")

    def output(self, trial_id: int) -> Path:
        """Return the output file of a job, by its first trial."""
        return self.outputs / f"{trial_id:08d}.out"

    def batch(self, trial_id: int) -> TrialFolder:
        """Return the folder of a job of several trials, by its first trial."""
        return TrialFolder(self.batches / f"{trial_id:08d}")

    def job(self, trial_id: int) -> TrialFolder:
        """Return the folder of the last job of a trial: its own, or that of several trials."""
        folder = self.folder(trial_id)
        if not self.batches.is_dir():  # most searches
            return folder
        job = self.batch(int((read_json(folder.spec) or {}).get(JOB, 0)))
        return job if trial_id in (read_json(job.spec) or {}).get(BATCH, ()) else folder

    def log(self, trial_id: int) -> Path:
        """Return the output file of the last job of a trial."""
        return self.output(int(self.job(trial_id).path.name))


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """The files by which controller and runner communicate about one trial."""

    path: Path

    @property
    def spec(self) -> Path:
        """What to run; written by the controller and read by the runner."""
        return self.path / "trial.json"

    @property
    def result(self) -> Path:
        """The result; written by the runner, by rename."""
        return self.path / "result.json"

    @property
    def runner(self) -> Path:
        """Process id and start time of the runner; written when it starts."""
        return self.path / "runner.json"

    @property
    def attempts(self) -> Path:
        """Earlier jobs of the trial that ended without a result, one JSON object a line."""
        return self.path / "attempts.jsonl"

    @property
    def gpu_use(self) -> Path:
        """How busy the GPUs of the last job were; missing without GPUs."""
        return self.path / "gpu_use.json"

    @property
    def lock(self) -> Path:
        """Lock that is held from before the runner starts until its last process ends."""
        return self.path / "lock"

    @property
    def reports(self) -> Path:
        """Intermediate values, one line ``step,value`` each."""
        return self.path / "reports.csv"

    @property
    def stop(self) -> Path:
        """Exists if the job must not train this one of its trials any more."""
        return self.path / "stop"

    @property
    def files(self) -> Path:
        """Directory for files of the user's code."""
        return self.path / "files"

    @property
    def model(self) -> Path:
        """Directory in which a final training writes its model."""
        return self.files / "model"

    @property
    def metrics(self) -> Path:
        """Metrics of the test of a final training, as JSON."""
        return self.files / "metrics.json"

    @property
    def params(self) -> Path:
        """The parameters as JSON, for SHELL."""
        return self.path / "params.json"

    @property
    def value(self) -> Path:
        """File in which a SHELL trial writes its result."""
        return self.path / "value.txt"


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write ``text`` to ``path`` by rename: readers see the complete old or new file.

    Each file has one writer at a time. The next writer overwrites a partial file of a killed one.

    Args:
        path: The file.
        text: Its content.
        durable: Wait for the disk, so that a power failure cannot truncate the file.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if error.filename is None:  # the disk is full
            error.filename = str(path)
        raise


def write_json(path: Path, data: object, *, durable: bool = False) -> None:
    """Write ``data`` to ``path`` as :func:`write_text` does."""
    write_text(path, json.dumps(data), durable=durable)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in ``path``; None if the file does not exist or is truncated."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return data if isinstance(data, dict) else None
