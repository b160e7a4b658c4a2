"""The contract of drivers for HTCONDOR; test_htcondor_contract.py runs it on a real pool."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from spearmint.drivers import Driver, DriverSettings
from spearmint.drivers.htcondor import HTCondorDriver
from spearmint.drivers.testing import QueueContract
from spearmint.resources import Resources

SOON = Resources(requests=("job_max_vacate_time=4",))
_SCHEDD = "_CONDOR_SCHEDD_HOST"


class TestHTCondorDriverOnAPool(QueueContract):
    def make_driver(self, directory: Path) -> HTCondorDriver:
        return HTCondorDriver(DriverSettings(directory=directory, polling_s=0.2, resources=SOON))

    @contextlib.contextmanager
    def silence(self, driver: Driver) -> Iterator[None]:
        os.environ[_SCHEDD] = "nowhere"
        try:
            yield
        finally:
            del os.environ[_SCHEDD]
