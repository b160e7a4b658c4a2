"""A test on hosts that failed is run again: on new hosts, and not for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.cloud import REPOSITORY
from tests.testbed.fabric import Node

CONFTEST = """
import pytest
from tests.conftest import (
    pytest_runtest_makereport, pytest_runtest_setup, pytest_runtest_teardown,
    pytest_timeout_set_timer,
)
"""
TESTS = """
import pathlib, time
import pytest

pytestmark = [pytest.mark.sge, pytest.mark.flaky(reruns=2)]
runs = {"call": 0, "teardown": 0}

@pytest.fixture(scope="module")
def hosts():
    yield (hosts := [])
    with open("ended", "a") as file:
        print(*hosts, file=file)

@pytest.fixture
def ends_badly():
    yield
    runs["teardown"] += 1
    assert runs["teardown"] > 1

def test_that_fails_once(hosts):
    runs["call"] += 1
    hosts.append(f"call-{runs['call']}")
    assert runs["call"] > 1

def test_whose_teardown_fails_once(hosts, ends_badly):
    hosts.append(f"teardown-{runs['teardown'] + 1}")

@pytest.mark.timeout(1)
def test_that_hangs_when_it_is_run_again():
    time.sleep(60 if pathlib.Path("failed").exists() else 0)
    pathlib.Path("failed").touch()
    assert False
"""


def test_what_failed_begins_with_new_hosts_and_its_whole_time(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "1 failed" in done.stdout, done.stdout
    assert "from pytest-timeout" in done.stdout
    assert (tmp_path / "ended").read_text() == "call-1\ncall-2 teardown-1\nteardown-2\n"


def test_a_host_that_is_lost_is_not_lost_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node.__new__(Node)
    node.pid, node._process = 0, None
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("number 0 is the tests' own group"))
    node.kill()
    assert not node.is_up
