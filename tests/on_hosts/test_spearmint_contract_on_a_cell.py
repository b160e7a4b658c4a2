"""Run the contract of drivers for SGE on the master of a real cell as an ordinary user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.cell import REPOSITORY, UID, Cell

pytestmark = pytest.mark.sge


@pytest.fixture(scope="module")
def one_host() -> Iterator[Cell]:
    with Cell(1) as cell:
        yield cell


def test_contract(one_host: Cell) -> None:
    suite = Path(__file__).with_name("contract_on_a_cell.py").relative_to(REPOSITORY)
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    argv = [*pytest_, f"--basetemp={one_host.home}/tmp", str(suite)]
    done = one_host.run("env", "-C", str(REPOSITORY), *argv, uid=UID, timeout_s=1000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout
