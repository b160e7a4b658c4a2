"""Describe a trial as a job that a worker runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from spearmint.drivers.celery.post.grants import remote_part
from spearmint.drivers.job_setup import setup_lines
from spearmint.drivers.queue import SubmitSpec
from spearmint.errors import InputError
from spearmint.resources import Resources, submit_arguments

_UNSUPPORTED = {
    "memory": "--memory",
    "parallel_environment": "--pe",
    "project": "--project",
    "requests": "--request",
    "options": "--submit-option",
}


def described(spec: SubmitSpec, *, fence_s: float, is_sent: bool) -> Mapping[str, Any]:
    """Return the content of ``job.json``.

    Args:
        spec: The job.
        fence_s: Seconds without a renewed lease after which the host kills the trial.
        is_sent: Whether hosts can run it that do not have the directory of the experiment.

    Raises:
        InputError: The trial needs what workers cannot give.
    """
    return {
        "argv": list(command(spec)),
        "directory": str(spec.directory),
        "output": str(spec.output),
        "environment": dict(spec.environment),
        "label": spec.label,
        "gpus": spec.resources.gpus,
        "walltime_s": spec.resources.walltime_s,
        "fence_s": fence_s,
        **({"remote": remote_part(spec)} if is_sent else {}),
    }


def command(spec: SubmitSpec) -> tuple[str, ...]:
    """Return the command: that of the trial, or a script that prepares its environment first."""
    need = spec.resources
    _check(need)
    lines = setup_lines(need, f"cd {shlex.quote(str(spec.directory))} || exit 1")
    if not lines:
        return spec.argv
    return ("/bin/bash", "-c", "\n".join([*lines, f"exec -- {shlex.join(spec.argv)}"]))


def _check(need: Resources) -> None:
    submit_arguments(need, "CELERY")
    if need.gpus not in (0, 1):
        raise InputError(
            f"a worker of Celery has one GPU, so a trial cannot have {need.gpus:g}",
            "Use --gpus=1 or --gpus=0.",
        )
    set_here = [flag for name, flag in _UNSUPPORTED.items() if getattr(need, name)]
    if set_here:
        raise InputError(
            f"workers of Celery cannot reserve what {', '.join(set_here)} requests",
            "Leave it out, or use another driver.",
        )
