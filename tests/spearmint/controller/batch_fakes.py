"""A driver in memory whose jobs have several trials."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spearmint.drivers import Job, JobEnd, JobRequest
from spearmint.layout import BATCH, Layout, TrialFolder, read_json, write_json
from spearmint.model import Trial, TrialState
from tests.spearmint.fakes import FakeDriver


class Batches(FakeDriver):
    """Ends trials by number: a value, a reason, None for none, or "stay" for one that trains on.

    A job ends when each of its trials has one of these but "stay".
    """

    def __init__(self, outcomes: Mapping[int, list[object]] | None = None) -> None:
        super().__init__(outcomes)
        self.sizes: list[list[int]] = []
        self.started: dict[Job, tuple[TrialFolder, list[int]]] = {}
        self.explained = 0

    def submit(self, request: JobRequest) -> Job:
        assert request.folder.path.parent.name == "batches"
        members = self.members(request.folder)
        for job, (folder, earlier) in self.started.items():
            if job not in self.ended:
                assert folder != request.folder, "an earlier job with this folder still runs"
                assert not set(earlier) & set(members), "a trial still is in another job"
        self.sizes.append(members)
        made = super().submit(request)
        self.started[made] = request.folder, members
        return made

    def members(self, folder: TrialFolder) -> list[int]:
        return read_json(folder.spec)[BATCH]

    def folder_of(self, job: Job, trial_id: int) -> TrialFolder:
        return Layout(self.folders[job].path.parents[1]).folder(trial_id)

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        for job in [job for job in jobs if job not in self.ended]:
            trains = [self.step(job, number) for number in self.members(self.folders[job])]
            if not any(trains):
                self.ended.add(job)

    def step(self, job: Job, trial_id: int) -> bool:
        """Take one step of a trial; return whether it trains on."""
        folder = self.folder_of(job, trial_id)
        if folder.result.exists() or folder.stop.exists():
            return False
        plan = self.outcomes.get(trial_id, [])
        outcome = plan.pop(0) if plan else float(trial_id)
        if outcome == "stay":
            return True
        if outcome is not None:
            result = {"reason": outcome} if isinstance(outcome, str) else {"value": outcome}
            self.write(folder, {**result, "seconds": 1.0})
        return False

    def write(self, folder: TrialFolder, result: dict[str, object]) -> None:
        write_json(folder.result, {**result, "key": read_json(folder.spec)["key"]})

    def explain(self, job: Job) -> JobEnd:
        self.explained += 1
        return super().explain(job)


def states(trials: Collection[Trial]) -> dict[int, TrialState]:
    return {trial.id: trial.state for trial in trials}
