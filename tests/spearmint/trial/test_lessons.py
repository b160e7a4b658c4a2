"""Trials tell their warm process which modules their libraries imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from spearmint.drivers.testing.trials import make_request
from tests.spearmint.drivers.test_warm_starts import LIMIT_S, WarmDriver, driver, run
from tests.waiting import is_running, until

__all__ = ["driver"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="trials are forked on Linux only")

# As a library does: the names are not in an import statement of the user's code.
CODE = """
import encodings, importlib, sys
NAMES = ["encodings." + name for name in {names}]

def main(job_id, params):
    missing = sum(name not in sys.modules for name in NAMES)
    [importlib.import_module(name) for name in NAMES]
    {then}
    return missing
"""
FEW = ["cp1250", "cp1251"]
MANY = [f"iso8859_{n}" for n in (*range(1, 12), *range(13, 17))]
MANY += [f"cp{n}" for n in (*range(1250, 1259), *range(860, 867))]


def code(names: list[str], then: str = "pass") -> str:
    return CODE.format(names=names, then=then)


def missing_until(driver: WarmDriver, root: Path, text: str, want: float) -> int:
    """Run trials until one misses ``want`` modules; return how many ran."""
    values: list[float] = []

    def is_there() -> bool:
        forked, value = run(driver, make_request(root, text, len(values) + 1))
        assert forked
        values.append(value)
        return value == want

    until(is_there, LIMIT_S, 0.5)
    return len(values)


def test_later_trials_have_the_modules_and_the_process_stays_the_same(
    driver: WarmDriver, tmp_path: Path
) -> None:
    assert run(driver, make_request(tmp_path, code(MANY), 0)) == (True, len(MANY))
    (warm,) = driver._warm._processes.values()
    missing_until(driver, tmp_path, code(MANY), 0.0)
    assert list(driver._warm._processes.values()) == [warm]
    processes = psutil.Process(warm.pid).children(recursive=True)
    os.kill(warm.pid, 9)
    until(lambda: not any(is_running(each.pid) for each in processes), LIMIT_S, 0.05)
    assert run(driver, make_request(tmp_path, code(MANY), 900))[1] == len(MANY)


def test_few_modules_are_not_worth_a_process(driver: WarmDriver, tmp_path: Path) -> None:
    for trial in range(4):
        assert run(driver, make_request(tmp_path, code(FEW), trial)) == (True, len(FEW))
    (warm,) = driver._warm._processes.values()
    found = psutil.Process(warm.pid)
    until(lambda: len(found.children(recursive=True)) == 2, LIMIT_S, 0.05)


def test_changed_code_of_the_user_is_read_after_a_lesson(
    driver: WarmDriver, tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 100\n")
    text = "import helper\n" + code(MANY, "missing += helper.VALUE")
    trials = missing_until(driver, tmp_path, text, 100.0)
    (tmp_path / "helper.py").write_text("VALUE = 1000\n")
    assert run(driver, make_request(tmp_path, text, trials + 1))[1] == 1000.0
