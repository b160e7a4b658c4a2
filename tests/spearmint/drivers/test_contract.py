"""The rules of a driver, for each built-in driver that needs no Grid Engine cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings, QueueDriver
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.testing import DriverContract, FakeQueue, QueueContract
from spearmint.trial.environment import THREADS
from tests.spearmint.drivers.fake_driver import FakeQueueDriver, LateDriver


class TestLocalDriver(DriverContract):
    def make_driver(self, directory: Path) -> LocalDriver:
        return LocalDriver(DriverSettings(directory=directory, max_concurrent=2))


class TestQueueDriver(QueueContract):
    def make_driver(self, directory: Path) -> QueueDriver:
        return FakeQueueDriver(DriverSettings(directory=directory, polling_s=0.05))

    @contextmanager
    def silence(self, driver: QueueDriver) -> Iterator[None]:
        queue = driver._queue
        assert isinstance(queue, FakeQueue)
        queue.is_silent = True
        yield
        queue.is_silent = False


class TestQueueWhoseIdsComeLate(TestQueueDriver):
    def make_driver(self, directory: Path) -> QueueDriver:
        return LateDriver(DriverSettings(directory=directory, polling_s=0.05))

    def check_explanation(self, text: str) -> None:
        # The job can end before it is listed.
        assert "SIGKILL" in text or self.make_driver(Path()).dialect.queue in text


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, ("2", "2", "2")),
        ({"OMP_NUM_THREADS": "1"}, ("1", None, None)),
        ({"MKL_NUM_THREADS": "3"}, ("2", "2", "3")),
    ],
)
def test_threads_of_the_user_are_not_raised(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    want: tuple[str | None, ...],
) -> None:
    """OpenBLAS and MKL obey OMP_NUM_THREADS only if their own variables are not set."""
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    shared = LocalDriver(DriverSettings(directory=tmp_path, max_concurrent=2))._shared()
    assert tuple(shared.get(name) for name in THREADS) == want
