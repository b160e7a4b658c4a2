"""The contract of drivers for HTCONDOR on a real pool, by an ordinary user."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.testbed.cell import REPOSITORY, UID
from tests.testbed.condor import CondorPool

pytestmark = pytest.mark.htcondor


def test_contract() -> None:
    suite = Path(__file__).with_name("contract_on_condor.py").relative_to(REPOSITORY)
    pytest_ = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider"]
    with CondorPool(hosts=1) as pool:
        argv = [*pytest_, f"--basetemp={pool.home}/tmp", str(suite)]
        done = pool.run("env", "-C", str(REPOSITORY), *argv, uid=UID, timeout_s=1000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout
