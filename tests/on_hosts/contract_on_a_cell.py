"""The rules of a driver for SGE, on the host of a real cell; test_spearmint_contract_on_a_cell.py
runs it there.
"""

from __future__ import annotations

import os
from pathlib import Path

from spearmint.drivers import DriverSettings
from spearmint.drivers.sge import SgeDriver
from spearmint.drivers.testing import DriverContract
from spearmint.resources import Resources

HERE = Resources(requests=(f"hostname={os.uname().nodename}",))  # so that the tests see processes


class TestSgeDriverOnACell(DriverContract):
    def make_driver(self, directory: Path) -> SgeDriver:
        return SgeDriver(DriverSettings(directory=directory, polling_s=0.2, resources=HERE))
