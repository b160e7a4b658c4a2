"""The rules of a driver, for each built-in driver that needs no Grid Engine cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spearmint.drivers import DriverSettings, QueueDriver
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.testing import DriverContract, FakeQueue, QueueContract
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
