"""Drivers that run real jobs: local, Grid Engine and pilots, the queues being stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spearmint.drivers import Driver, DriverSettings
from spearmint.drivers import queue_driver as driver_module
from spearmint.drivers import queue_listing as listing_module
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.sge import GridEngine, SgeDriver
from spearmint.drivers.testing import FakeQueue
from tests.spearmint.drivers.fake_driver import FakeQueueDriver
from tests.spearmint.drivers.sge.fake_cell import FakeCell


def local(root: Path) -> Driver:
    return LocalDriver(DriverSettings(directory=root, max_concurrent=2))


def sge(root: Path) -> Driver:
    settings = DriverSettings(directory=root, polling_s=0.0)
    return SgeDriver(settings, queue=GridEngine(settings, queue=FakeCell(settings)))


def pilots(root: Path) -> Driver:
    settings = DriverSettings(directory=root, polling_s=0.0, queues_ahead=True)
    return FakeQueueDriver(settings, queue=FakeQueue(settings))


@pytest.fixture(params=[local, sge, pilots])
def make_driver(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Driver]:
    """Return a function that makes a driver; its jobs run the CODE of the test's module."""
    monkeypatch.setattr(listing_module, "_LOAD", 0)
    monkeypatch.setattr(driver_module, "_ENDING_POLL_S", 0)
    (tmp_path / "x.py").write_text(request.module.CODE)
    return lambda: request.param(tmp_path)


class Killed(BaseException):
    """The controller is killed here."""
