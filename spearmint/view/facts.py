"""Facts of each trial for files: the rungs that it reached, and how it used its GPUs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from spearmint.fidelity import Fidelity
from spearmint.layout import Layout
from spearmint.model import Trial, TrialState
from spearmint.store.session import Session
from spearmint.trial.attempts import read_attempts
from spearmint.view.gpu_use import summary_of


def trial_facts(session: Session, trial: Trial, *, flat: bool = False) -> dict[str, Any]:
    """Return what ``spearmint export`` adds to a trial; empty without rungs and GPUs.

    Args:
        session: The search of the trial.
        trial: The trial.
        flat: Also a column for the value and the seconds of each rung.
    """
    fidelity = session.experiment.fidelity
    rungs = {} if fidelity is None else dict(rung_facts(fidelity, trial, flat=flat))
    return {**rungs, **_gpu_facts(session.layout, trial)}


def rung_facts(fidelity: Fidelity, trial: Trial, *, flat: bool) -> Iterator[tuple[str, Any]]:
    """Yield the steps that a trial has done, and with ``flat`` value and seconds of each rung."""
    is_complete = trial.state is TrialState.COMPLETE
    passed = len(fidelity.rungs) if is_complete else len(trial.rungs)
    yield "steps_done", fidelity.rungs[passed - 1] if passed else 0
    if not flat:
        return
    values = dict(zip(fidelity.rungs, trial.rungs, strict=False))
    if is_complete and trial.value is not None:
        values[fidelity.high] = trial.value
    seconds = dict(zip(fidelity.rungs, trial.part_seconds, strict=False))
    for step in fidelity.rungs:
        value = values.get(step)
        yield f"value_at_{step}", None if value is None or math.isnan(value) else value
        yield f"seconds_at_{step}", seconds.get(step)


def _gpu_facts(layout: Layout, trial: Trial) -> dict[str, Any]:
    """Return how all jobs of a trial used its GPUs; empty if none measured them."""
    folder, uses = layout.folder(trial.id), []
    with contextlib.suppress(OSError):
        if folder.gpu_use.exists():  # most searches: one look at each trial
            uses = [job["gpu_use"] for job in read_attempts(folder) if "gpu_use" in job]
    if not uses:
        return {}
    summary = summary_of(uses)
    return {
        "gpu_busy": None if summary is None else round(summary.busy, 4),
        "gpu_memory_mib": max(gpu["memory_mib"] for use in uses for gpu in use["gpus"]),
        "gpu_shared": any(use["shared"] for use in uses),
    }
