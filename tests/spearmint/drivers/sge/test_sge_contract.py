"""The rules of a driver for SGE, on a fake cell; tests/on_hosts checks them on a real cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spearmint.drivers import DriverSettings
from spearmint.drivers.sge import GridEngine, SgeDriver
from spearmint.drivers.testing import QueueContract
from tests.spearmint.drivers.sge.fake_cell import FakeCell


class TestSgeDriver(QueueContract):
    def make_driver(self, directory: Path) -> SgeDriver:
        settings = DriverSettings(directory=directory, polling_s=0.05)
        self.cell = FakeCell(settings)
        return SgeDriver(settings, queue=GridEngine(settings, queue=self.cell))

    @contextmanager
    def silence(self, driver: SgeDriver) -> Iterator[None]:
        self.cell.queue.is_silent = True
        yield
        self.cell.queue.is_silent = False
