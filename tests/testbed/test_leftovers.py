"""A failed test leaves nothing that fails the next test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.leftovers import ended_if_failed
from tests.testbed.brokers import Broker

HOOKS = "from tests.conftest import pytest_runtest_call, pytest_runtest_setup\n"
LEAKS = """
import gc, socket, subprocess

def test_fails():
    child = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)
    file, end = open("child", "w"), socket.socket()
    file.write(str(child.pid))
    file.flush()
    assert child.pid < 0

def test_passes():
    gc.collect()
"""


def test_the_next_test_passes(tmp_path: Path) -> None:
    (tmp_path / "test_leaks.py").write_text(LEAKS)
    (tmp_path / "conftest.py").write_text(HOOKS)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir=."], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert not Path("/proc", (tmp_path / "child").read_text()).exists()


def test_only_what_the_block_starts_is_killed() -> None:
    made: list[subprocess.Popen[bytes]] = []

    def fail() -> None:
        with ended_if_failed():
            made.append(subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE))
            raise ValueError("fails")

    with subprocess.Popen(["sleep", "600"]) as before:
        with pytest.raises(ValueError, match="fails"):
            fail()
        (left,) = made
        assert left.returncode == -9
        assert left.stdin is not None
        assert left.stdin.closed
        assert before.poll() is None
        before.kill()


class Sleeper(Broker):
    """A broker whose only process sleeps."""

    url = ""

    def start(self) -> None:
        self.spawn("sleep", "600")


def test_a_broker_that_a_failed_test_restarts_runs_in_the_next_test() -> None:
    broker = Sleeper()

    def fail() -> None:
        with ended_if_failed():
            broker.kill()
            broker.start()
            raise ValueError("fails")

    try:
        broker.start()
        with pytest.raises(ValueError, match="fails"):
            fail()
        assert [child.poll() for child in broker._children] == [None]
    finally:
        broker.close()
