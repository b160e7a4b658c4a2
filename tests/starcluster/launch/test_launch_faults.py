"""Seeded runs of commands that are cut, killed and repeated while AWS is slow and late."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.testbed.cloud import REPOSITORY

RUNS = os.environ.get("LAUNCH_FAULTS", "")


@pytest.mark.slow
@pytest.mark.skipif(not RUNS, reason="five seconds a run; set LAUNCH_FAULTS=200 for 200 runs")
def test_no_orphan_no_two_masters_and_no_message_that_is_not_so() -> None:
    argv = [sys.executable, "-m", "benchmarks.launch_faults", "--runs", RUNS, "--at-once", "2"]
    done = subprocess.run(argv, check=False, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{RUNS} runs, 0 wrong")
