"""The queue driver on a fake queue whose jobs change state when a test changes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings, JobRequest
from spearmint.drivers import queue_driver as driver_module
from spearmint.drivers import queue_listing as listing_module
from spearmint.drivers.testing import FakeQueue
from spearmint.layout import Layout
from spearmint.resources import Resources
from tests.spearmint.drivers.fake_driver import FakeQueueDriver

MakeDriver = Callable[..., FakeQueueDriver]
RequestOf = Callable[..., JobRequest]


@pytest.fixture
def queue(tmp_path: Path) -> FakeQueue:
    queue = FakeQueue(DriverSettings(directory=tmp_path))
    queue.starts_jobs = False
    return queue


@pytest.fixture
def make(queue: FakeQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeDriver:
    monkeypatch.setattr(listing_module, "_LOAD", 0)  # list the jobs at every poll
    monkeypatch.setattr(driver_module, "_ENDING_POLL_S", 0)

    def make(
        *, polling_s: float = 0.0, queues_ahead: bool = False, **need: object
    ) -> FakeQueueDriver:
        settings = DriverSettings(
            directory=tmp_path,
            polling_s=polling_s,
            queues_ahead=queues_ahead,
            resources=Resources(**need),
        )
        return FakeQueueDriver(settings, queue=queue)

    return make


@pytest.fixture
def request_of(tmp_path: Path) -> RequestOf:
    def request_of(trial_id: int, name: str = "4 räder") -> JobRequest:
        layout = Layout(tmp_path)
        folder = layout.folder(trial_id)
        folder.path.mkdir(parents=True, exist_ok=True)
        return JobRequest(
            name=f"{name}-{trial_id:08d}",
            folder=folder,
            directory=tmp_path,
            output=layout.output(trial_id),
        )

    return request_of
