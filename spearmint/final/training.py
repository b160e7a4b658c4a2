"""One final training, as a job of the driver that runs the trials."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from spearmint.drivers import Driver, Job, JobRequest, JobState
from spearmint.final.choice import Choice
from spearmint.final.keeping import keep_model
from spearmint.layout import NODES, PROCESSES, Layout, TrialFolder, read_json, write_json
from spearmint.model import Experiment, Result, Trial
from spearmint.models import ModelStore, Version
from spearmint.store.study import Study
from spearmint.trial.attempts import add_attempt
from spearmint.trial.languages import to_entries
from spearmint.trial.results import read_result


class Observer(Protocol):
    """Receives messages."""

    def note(self, text: str) -> None:
        """Show a message to the user."""


@dataclass(slots=True, kw_only=True)
class FinalTraining:
    """Trains the model of one search or region once, whatever is killed.

    The folder ``final/VERSION`` appears by rename with the chosen trial in it, before the job
    starts. The model appears as ``models/REGION/VERSION`` by rename after the job has ended.
    Between the two, the next run finds the job, or its result, or starts it again. The caller holds
    the lock of the search.

    Attributes:
        version: The version that is trained; 0 before ``begin``.
        kept: The model; None before the end.
        failure: Why the training failed; empty if it did not.
    """

    experiment: Experiment
    layout: Layout
    study: Study
    driver: Driver
    observer: Observer
    version: int = 0
    kept: Version | None = None
    failure: str = ""
    _job: Job | None = None
    _lost: int = 0
    _store: ModelStore = field(init=False)

    def __post_init__(self) -> None:
        name = self.experiment.region or self.experiment.name
        self._store = ModelStore(self.layout.models / name)

    @property
    def jobs(self) -> list[Job]:
        """The job, if it has not ended."""
        return [] if self._job is None else [self._job]

    @property
    def is_over(self) -> bool:
        """Whether the model is kept, or the training failed."""
        return self.kept is not None or bool(self.failure)

    @property
    def _folder(self) -> TrialFolder:
        return self.layout.final(self.version)

    @property
    def _label(self) -> str:
        return f"{self._store.folder.name}: version {self.version}"

    def unfinished(self) -> int:
        """Return the version of a training that an earlier run began; 0 if there is none."""
        begun = max(self._begun(), default=0)
        return begun if begun and not self._store.path(begun).exists() else 0

    def _begun(self) -> list[int]:
        found = self.layout.finals.glob("*/")
        return [int(path.name) for path in found if path.name.isdecimal()]

    def same(self, choice: Choice) -> Version | None:
        """Return the newest version if it was trained from the same trial."""
        newest = self._store.versions()[-1:]
        if newest and not self.unfinished():
            known = read_json(newest[0].path / "provenance.json") or {}
            if known.get("identity") == choice.identity(self.study):
                return newest[0]
        return None

    def adopt(self) -> None:
        """Find the job that an earlier run submitted, if there is one."""
        self.version = self.unfinished()
        if self.version:
            self._job = self.driver.adopt(self._folder)

    def begin(self, choice: Choice) -> None:
        """Submit the job of ``choice``, or continue with a training that an earlier run began.

        Raises:
            DriverUnreachable, QueueFull: The next call continues.
        """
        self.layout.finals.mkdir(parents=True, exist_ok=True)
        if not self.version:
            self.adopt()
        if self.version and self._job is None and self._has_model():
            self._keep()
            return
        if self.version and self._job is None and not self._is_of(choice):
            shutil.rmtree(self._folder.path)  # it failed, and another trial is chosen now
            self.version = 0
        if not self.version:
            self.version = self._create(choice)
        if self._job is None:
            self._submit()

    def _is_of(self, choice: Choice) -> bool:
        begun = self._spec().get("final") or {}
        return bool(begun.get("identity") == choice.identity(self.study))

    def _result(self) -> Result | None:
        return read_result(self._folder, str(self._spec().get("key")))

    def _has_model(self) -> bool:
        result = self._result()
        return result is not None and result.value is not None and self._folder.metrics.exists()

    def _create(self, choice: Choice) -> int:
        """Write the folder of a new version, and return the version."""
        numbers = [v.number for v in self._store.versions()]
        version = max([*numbers, *self._begun()], default=0) + 1
        part = TrialFolder(self.layout.finals / f".{version:08d}.part")
        shutil.rmtree(part.path, ignore_errors=True)
        part.path.mkdir()
        identity = choice.identity(self.study)
        trial = choice.trial
        spec = {
            "key": f"{identity}-{version}",
            "job_id": trial.id,
            "directory": str(self.layout.root),
            "name": self.experiment.name,
            "region": self.experiment.region,
            "language": self.experiment.language,
            "params": to_entries(self.experiment.variables, trial.params),
            "final": {"how": choice.how, "value": trial.value, "identity": identity},
        }
        if n := self._processes(trial):
            spec[PROCESSES] = n
            if (nodes := self.experiment.resources.nodes) > 1:
                spec[NODES] = nodes
        write_json(part.spec, spec, durable=True)
        part.path.rename(self.layout.final(version).path)
        return version

    def _processes(self, trial: Trial) -> int | None:
        """Return how many processes train: those of config.pb, otherwise as many as the trial had.

        None for one process without a launcher.
        """
        if self.experiment.launcher:
            return self.experiment.processes_of_trial
        ran = read_json(self.layout.folder(trial.id).spec) or {}
        return ran.get(PROCESSES)

    def _spec(self) -> dict[str, Any]:
        return read_json(self._folder.spec) or {}

    def _submit(self) -> None:
        spec, folder = self._spec(), self._folder
        for stale in (folder.reports, folder.result):
            stale.unlink(missing_ok=True)
        request = JobRequest(
            name=f"{self.experiment.study_name}-final-{self.version}",
            folder=folder,
            directory=self.layout.root,
            output=self.layout.final_output(self.version),
        )
        self._job = self.driver.submit(request)
        self.observer.note(
            f"{self._label} is trained with the parameters of trial {spec['job_id']}."
        )

    def collect(self, states: Mapping[Job, JobState]) -> None:
        """Keep the model of a job that ended, or start a lost job again."""
        if self._job is None or states.get(self._job) is not JobState.GONE:
            return
        job, self._job = self._job, None
        self.driver.cancel([job])  # terminates leftover processes
        result = self._result()
        if result is not None and result.value is None:
            self._fail(result.reason)
            return
        if self._has_model():
            self._keep()
            return
        end = self.driver.explain(job)
        add_attempt(self._folder, end.text, job=job.id)
        self._lost += end.counts
        if not end.again or self._lost > self.experiment.max_retries:
            self._fail(end.text)
            return
        self.observer.note(f"{self._label} was lost ({end.text}). Retrying.")
        self._submit()

    def _keep(self) -> None:
        spec = self._spec()
        self.kept = keep_model(self.experiment, self.layout, self._store, self.version, spec)
        self.observer.note(f"{self._label} has the test value {self.kept.value:g}.")

    def _fail(self, reason: str) -> None:
        self.failure = reason
        output = self.layout.final_output(self.version)
        self.observer.note(f"{self._label} failed: {reason}\nFull output: {output}")

    def refuse(self, reason: str) -> None:
        """Store and report why no training can begin."""
        self.failure = reason
        self.observer.note(f"No final model: {reason}.")

    def end(self) -> None:
        """Terminate the job; the next run starts it again."""
        self.driver.cancel(self.jobs)
        self._job = None
