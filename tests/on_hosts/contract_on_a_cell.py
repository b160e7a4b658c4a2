"""The contract of drivers for SGE; test_spearmint_contract_on_a_cell.py runs it on a real cell."""

from __future__ import annotations

import os
from pathlib import Path

from spearmint.drivers import DriverSettings
from spearmint.drivers.sge import SgeDriver
from spearmint.drivers.testing import DriverContract
from spearmint.resources import Resources

HERE = Resources(
    requests=(f"hostname={os.uname().nodename}",)
)  # so the tests can see the processes


class TestSgeDriverOnACell(DriverContract):
    def make_driver(self, directory: Path) -> SgeDriver:
        return SgeDriver(DriverSettings(directory=directory, polling_s=0.2, resources=HERE))
