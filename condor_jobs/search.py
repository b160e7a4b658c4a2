"""Run a search on the manager, in a job that can be killed and restarted at any time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from condor_jobs.errors import NodeFailed

_FAILED, _WRONG = 1, 2  # exit codes of spearmint
_STEP_S = 2.0


def search(directory: Path, options: Sequence[str], region: str = "") -> int:
    """Run or continue a search; return its exit code.

    Args:
        directory: Directory of config.pb.
        options: Options of ``spearmint run``.
        region: Region whose success counts; empty for all.
    """
    status = _run(directory, options)
    if status == _FAILED and region:  # another region may have failed
        with tempfile.NamedTemporaryFile("w", prefix="region-") as file:
            file.write(f"{region}\n")
            file.flush()
            status = _run(directory, (*options, f"--regions={file.name}"))
    return status


def best_of(directory: Path, region: str) -> str:
    """Return the best trial as JSON. Raises NodeFailed without one."""
    only = ["--region", region] if region else []
    done = _spearmint("best", "--json", *only, str(directory), capture=True)
    if done.returncode or not isinstance(json.loads(done.stdout), dict):
        raise NodeFailed(f"the search of {directory} has no complete trial {region}".rstrip())
    return done.stdout


def _run(directory: Path, options: Sequence[str]) -> int:
    """Run ``spearmint run``, when no other controller runs this search any more."""
    while True:
        while _has_controller(directory):
            time.sleep(_STEP_S)
        status = _forwarding("run", *options, str(directory))
        if status != _WRONG or not _has_controller(directory):
            return status


def _has_controller(directory: Path) -> bool:
    done = _spearmint("status", "--json", str(directory), capture=True)
    return done.returncode == 0 and bool(json.loads(done.stdout).get("controller"))


def _forwarding(*arguments: str) -> int:
    """Run a command of spearmint, and send it the signals that this process gets."""
    received: list[int] = []
    with subprocess.Popen(_argv(*arguments), stdin=subprocess.DEVNULL) as child:

        def forward(number: int, frame: FrameType | None) -> None:
            received.append(number)
            child.send_signal(number)

        before = {n: signal.signal(n, forward) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            status = child.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if received:
        sys.exit(128 + received[0])
    return status if status >= 0 else 128 - status


def _spearmint(*arguments: str, capture: bool) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_argv(*arguments), check=False, capture_output=capture, text=True)


def _argv(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "spearmint", *arguments]
