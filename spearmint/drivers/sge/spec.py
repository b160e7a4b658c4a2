"""A trial as a job of Grid Engine."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import fields
from pathlib import Path

import sge_jobs as sge
from sge_jobs import JobSpec, job_name
from spearmint.drivers.base import JobRequest
from spearmint.layout import TrialFolder
from spearmint.resources import Resources, submit_arguments
from spearmint.trial.reporting import AHEAD, ENDED_FILE, PATIENCE, REPORTS_FILE, THREADS, TRIAL_DIR

_NAME_LENGTH = 80
_PATIENCE_S = 600.0


def token_of(folder: TrialFolder) -> str:
    """Return what tells the jobs of ``folder`` from all others."""
    return hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:12]


def trial_spec(
    request: JobRequest, need: Resources, *, bell: Path, tickets: Path | None
) -> JobSpec:
    """Return the job of a trial.

    Args:
        bell: File that the trial creates when its result stands.
        tickets: Where it finds trials to go on with; None when it goes on with none.
    """
    folder, token = request.folder, token_of(request.folder)
    module = ("spearmint.trial.runner",) if tickets is None else ("spearmint.trial.pilot", token)
    relay = {} if tickets is None else {AHEAD: str(tickets)}
    python = str(need.venv / "bin" / "python") if need.venv else sys.executable
    inherited = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return JobSpec(
        name=f"{job_name(request.name)[:_NAME_LENGTH]}-{token}",
        argv=(python, "-P", "-m", *module, str(folder.path)),
        directory=request.directory,
        log=request.output,
        resources=_sge_resources(need),
        environment={
            **inherited,
            **dict.fromkeys(THREADS, str(need.slots)),
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            TRIAL_DIR: str(folder.files),
            REPORTS_FILE: str(folder.reports),
            ENDED_FILE: str(bell),
            PATIENCE: f"{_PATIENCE_S:g}",
            **relay,
            **dict(need.environment),
        },
        modules=need.modules,
        venv=need.venv,
        setup=need.setup,
    )


def _sge_resources(need: Resources) -> sge.Resources:
    """Return what sge_jobs knows of ``need`` by name, and the rest as options of qsub."""
    shared = {field.name: getattr(need, field.name) for field in fields(sge.Resources)}
    return sge.Resources(**{**shared, "options": (*submit_arguments(need, "SGE"), *need.options)})


def slots_of(host: sge.Host, queue: str) -> int:
    """Return the slots of a host; in ``queue``, a list as for qsub, if one is named."""
    names = {name.partition("@")[0] for name in queue.split(",") if name}
    if not names:
        return host.slots
    return sum(one.slots for one in host.queues if one.name.partition("@")[0] in names)


def has_time_limit(need: Resources) -> bool:
    """Tell whether a job may run for so long only, whatever it runs."""
    named = any(request.partition("=")[0] in ("h_rt", "s_rt") for request in need.requests)
    return need.walltime_s is not None or named
