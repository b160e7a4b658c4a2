"""Run HTCondor's commands."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from condor_jobs.errors import SubmitError

_TIMEOUT_S = 120


def ask(argv: Sequence[str], *, cwd: Path | None = None, stdin: str = "") -> str:
    """Return what a command printed. Raises SubmitError if it fails, is missing or hangs."""
    try:
        done = subprocess.run(
            argv,
            check=False,
            cwd=cwd,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        fix = "Run this on a host of the pool that submits jobs."
        raise SubmitError(f"{argv[0]} does not exist on this host", fix) from error
    except subprocess.TimeoutExpired as error:
        raise SubmitError(f"{argv[0]} did not answer within {_TIMEOUT_S} s") from error
    if done.returncode:
        raise SubmitError(f"{argv[0]} failed: {' '.join(done.stdout.split())}")
    return done.stdout
