"""A driver in memory and a loop around it, for tests of the loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from spearmint.controller.controller import Controller
from spearmint.controller.events import StudyCounts
from spearmint.drivers import Driver, Job, JobEnd, JobRequest, JobState
from spearmint.errors import DriverError
from spearmint.layout import TrialFolder, read_json, write_json
from spearmint.model import Trial


class FakeDriver(Driver):
    """Holds jobs in memory; ``outcomes`` lists per trial how its next jobs end.

    An outcome is a value, a reason (str), None for a job that disappears, or "stay".
    """

    name: ClassVar[str] = "fake"

    def __init__(self, outcomes: Mapping[int, list[object]] | None = None) -> None:
        self.outcomes = dict(outcomes or {})
        self.folders: dict[Job, TrialFolder] = {}
        self.ended: set[Job] = set()
        self.most = 0
        self.polls_fail = False

    def submit(self, request: JobRequest) -> Job:
        job = Job("fake", f"{request.name}.{len(self.folders)}")
        self.folders[job] = request.folder
        return job

    def adopt(self, folder: TrialFolder) -> Job | None:
        living = self.folders.items()
        return next((job for job, at in living if at == folder and job not in self.ended), None)

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        if self.polls_fail:
            raise DriverError("the queue does not answer")
        self.most = max(self.most, len(jobs))
        return {job: JobState.GONE if job in self.ended else JobState.ALIVE for job in jobs}

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        for job in jobs:
            trial_id = int(self.folders[job].path.name)
            plan = self.outcomes.get(trial_id, [])
            outcome = plan.pop(0) if plan else float(trial_id)
            if outcome == "stay":
                plan.insert(0, "stay")
                continue
            if isinstance(outcome, float):
                self.leave(job, {"value": outcome, "seconds": 1.0})
            elif isinstance(outcome, str):
                self.leave(job, {"reason": outcome})
            self.ended.add(job)

    def leave(self, job: Job, result: dict[str, object]) -> None:
        """Write a result as the runner does."""
        folder = self.folders[job]
        write_json(folder.result, {**result, "key": read_json(folder.spec)["key"]})

    def cancel(self, jobs: Collection[Job]) -> None:
        self.ended.update(jobs)

    def preview(self, request: JobRequest) -> str:
        return request.name

    def explain(self, job: Job) -> JobEnd:
        return JobEnd("vanished")


class Notes:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ended_: list[Trial] = []

    def submitted(self, trial: Trial, counts: StudyCounts) -> None:
        self.lines.append(f"submitted {trial.id}")

    def started(self, trial: Trial, counts: StudyCounts) -> None:
        self.lines.append(f"started {trial.id}")

    def ended(self, trial: Trial, counts: StudyCounts) -> None:
        self.ended_.append(trial)

    def note(self, text: str) -> None:
        self.lines.append(text)


class Search:
    """One experiment and its controller; ``run`` returns the counts of its first study."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.studies = [study.study for study in controller.studies]
        self.study, self.layout = self.studies[0], controller.studies[0].layout
        self.driver, self.observer, self.stop = (
            controller.driver,
            controller.observer,
            controller.stop,
        )

    def run(self) -> StudyCounts:
        self.figures = self.controller.run()
        return next(iter(self.figures.values()))
