"""The SGE driver on a queue in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings, JobRequest
from spearmint.drivers.sge import driver as sge_module
from spearmint.drivers.sge.driver import SgeDriver
from spearmint.layout import Layout
from spearmint.resources import Resources
from tests.spearmint.drivers.fake_queue import FakeQueue


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue()


@pytest.fixture
def make(queue: FakeQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sge_module, "_LOAD", 0)  # ask at every poll
    monkeypatch.setattr(sge_module, "_LEAVING_S", 0)

    def make(*, polling_s: float = 0.0, **need: object) -> SgeDriver:
        settings = DriverSettings(
            directory=tmp_path, polling_s=polling_s, resources=Resources(**need)
        )
        return SgeDriver(settings, queue=queue)

    return make


@pytest.fixture
def request_of(tmp_path: Path):
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
