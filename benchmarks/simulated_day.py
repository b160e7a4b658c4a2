"""A driver on a simulated clock: trials run as always, and their sleep passes at once."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from spearmint.drivers import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.layout import TrialFolder, read_json
from spearmint.trial import runner


class Clock:
    """The time of this process and its forks, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    @contextmanager
    def set_to(self, now: float) -> Iterator[None]:
        """Replace the clock of Python by this one."""
        self.now = now
        with (
            mock.patch.object(time, "time", self.read),
            mock.patch.object(time, "monotonic", self.read),
            mock.patch.object(time, "sleep", self.sleep),
        ):
            yield


CLOCK = Clock()


class SimulatedDriver(Driver):
    """Runs a trial in a fork; its job ends when the clock has passed the seconds that it took."""

    def __init__(self, settings: DriverSettings) -> None:
        super().__init__(settings)
        self.ends: dict[Job, float] = {}
        self.folders: dict[Job, TrialFolder] = {}
        self.settings = settings

    def submit(self, request: JobRequest) -> Job:
        """Run the trial to its end."""
        pid = os.fork()
        if pid == 0:
            self._run(request)
        os.waitpid(pid, 0)
        job = Job("simulated", f"{request.name}.{len(self.ends)}")
        result = read_json(request.folder.result) or {}
        self.ends[job] = CLOCK.now + float(result.get("seconds", 0.0))
        self.folders[job] = request.folder
        if result:
            request.folder.result.rename(self._held(job))
        return job

    def _held(self, job: Job) -> Path:
        """Return where a result is until its time has come."""
        return self.folders[job].path / "held.json"

    def _run(self, request: JobRequest) -> None:
        status = 1
        try:
            output = os.open(request.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for stream in (1, 2):
                os.dup2(output, stream)
            status = runner.main([str(request.folder.path)])
        finally:
            os._exit(status)

    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return None: each job has ended when its fork has."""
        return None

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return which jobs have ended by the clock, and show their results."""
        states = {}
        for job in jobs:
            states[job] = JobState.GONE if self.ends[job] <= CLOCK.now else JobState.ALIVE
            if states[job] is JobState.GONE and self._held(job).exists():
                self._held(job).rename(self.folders[job].result)
        return states

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Move the clock to the next end of a job."""
        ends = [self.ends[job] for job in jobs]
        CLOCK.now = max(CLOCK.now, min([*ends, CLOCK.now + timeout_s]))

    def cancel(self, jobs: Collection[Job]) -> None:
        """End jobs."""
        for job in jobs:
            self.ends[job] = min(self.ends[job], CLOCK.now)

    def explain(self, job: Job) -> JobEnd:
        """Return that the fork crashed."""
        return JobEnd("the fork of the trial crashed")

    def preview(self, request: JobRequest) -> str:
        """Return the name of the job."""
        return request.name

    def capacity(self) -> int:
        """Return eight GPUs."""
        return 8
