"""The contract of drivers for SLURM; test_slurm_contract.py runs it on a real cluster."""

from __future__ import annotations

import os
from pathlib import Path

from spearmint.drivers import DriverSettings
from spearmint.drivers.slurm import SlurmDriver
from spearmint.drivers.testing import DriverContract
from spearmint.resources import Resources

HERE = Resources(options=(f"--nodelist={os.uname().nodename}",))  # the tests see the processes


class TestSlurmDriverOnACluster(DriverContract):
    def make_driver(self, directory: Path) -> SlurmDriver:
        return SlurmDriver(DriverSettings(directory=directory, polling_s=0.2, resources=HERE))
