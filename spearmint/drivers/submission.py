"""Describe a trial as a job for any queue."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from spearmint.drivers.base import JobRequest
from spearmint.drivers.queue import Dialect, SubmitSpec
from spearmint.layout import TrialFolder
from spearmint.resources import Resources
from spearmint.trial.environment import (
    DONE_FILE,
    JOB_ID_VARIABLE,
    PENDING_DIR,
    REPORTS_FILE,
    RERUN_EXIT_CODE,
    RETRY_S,
    THREADS,
    TRIAL_DIR,
)

_RETRY_S = 600.0  # longer than a file server needs to restart


def token_of(folder: TrialFolder) -> str:
    """Return the 12 hexadecimal digits that identify the jobs of ``folder``."""
    return hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:12]


def submit_spec(
    request: JobRequest,
    need: Resources,
    dialect: Dialect,
    *,
    done: Path,
    pending: Path | None,
    avoid: tuple[str, ...] = (),
) -> SubmitSpec:
    """Return the job of a trial.

    Args:
        done: File that the trial creates when its result is written.
        pending: Directory of further trials for the job; None if the job runs a single trial.
        avoid: Hosts on which it must not start.
    """
    folder, token = request.folder, token_of(request.folder)
    module = ("spearmint.trial.runner",) if pending is None else ("spearmint.trial.pilot", token)
    python = str(need.venv / "bin" / "python") if need.venv else sys.executable
    return SubmitSpec(
        token=token,
        label=request.name,
        argv=(python, "-P", "-m", *module, str(folder.path)),
        directory=request.directory,
        output=request.output,
        environment={
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            **dict.fromkeys(THREADS, str(need.slots)),
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            TRIAL_DIR: str(folder.files),
            REPORTS_FILE: str(folder.reports),
            DONE_FILE: str(done),
            RETRY_S: f"{_RETRY_S:g}",
            **_queue_variables(dialect, pending),
            **dict(need.environment),
        },
        resources=need,
        avoid=avoid,
        folder=folder.path,
    )


def _queue_variables(dialect: Dialect, pending: Path | None) -> Mapping[str, str]:
    rerun = {RERUN_EXIT_CODE: str(dialect.rerun_exit_code)} if dialect.rerun_exit_code else {}
    if pending is None:
        return rerun
    return {**rerun, PENDING_DIR: str(pending), JOB_ID_VARIABLE: dialect.job_id_variable}


def has_time_limit(need: Resources, dialect: Dialect) -> bool:
    """Return whether jobs have a time limit, which counts from the start of a job."""
    named = any(request.partition("=")[0] in dialect.limits_time for request in need.requests)
    return need.walltime_s is not None or named
