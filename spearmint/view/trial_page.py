"""One trial with all that is known about it: jobs, output, curve, notes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spearmint.controller.outcomes import tail_of
from spearmint.formatting import (
    constraint_text,
    format_duration,
    format_value,
    infeasible_text,
    objectives_text,
    plain,
)
from spearmint.layout import TrialFolder
from spearmint.model import Trial, TrialState
from spearmint.store.session import Session
from spearmint.trial.attempts import read_attempts
from spearmint.trial.reporting import read_reports
from spearmint.view.gpu_use import use_lines

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 60


def trial_data(session: Session, trial: Trial, lines: int) -> dict[str, Any]:
    """Return a trial for JSON: also its jobs, folder, log with its last ``lines``, and curve."""
    layout = session.layout
    folder, log = layout.folder(trial.id), layout.log(trial.id)
    curve = trial.reports or read_reports(folder.reports)
    curve = {step: value for step, value in curve.items() if math.isfinite(value)}
    tail = tail_of(log).splitlines() or trial.tail.splitlines()
    return {
        **trial.to_json(),
        "name": f"{session.experiment.study_name}-{int(log.stem)}",
        "attempts": _attempts(trial, folder),
        "folder": str(folder.path),
        "log": str(log),
        "tail": "\n".join(tail[-lines:] if lines else []),
        "curve": {str(step): value for step, value in sorted(curve.items())},
        **_require(session, trial),
    }


def _require(session: Session, trial: Trial) -> dict[str, Any]:
    """Return the linear constraints, and those that the trial violates; empty without any."""
    experiment = session.experiment
    if not experiment.linear:
        return {}
    return {"require": experiment.require, "violates": experiment.violations(trial)}


def _attempts(trial: Trial, folder: TrialFolder) -> list[dict[str, Any]]:
    """Return the jobs of a trial; that of a trial which ended has its duration and reason."""
    found = read_attempts(folder)
    if found and "ended" not in found[-1]:
        last = found[-1]
        if trial.state is TrialState.RUNNING:
            last["seconds"] = time.time() - float(last.get("start") or time.time())
        else:
            seconds = None if trial.seconds is None else trial.seconds - trial.earlier_s
            last["seconds"], last["reason"] = seconds, trial.reason
    return found


def trial_lines(trial: Trial, page: Mapping[str, Any], *, bars: bool) -> Iterator[str]:
    """Yield the lines of a page that ``trial_data`` returned, with or without ``bars``."""
    is_queued = trial.state is TrialState.RUNNING and not any(
        "ended" not in attempt for attempt in page["attempts"]
    )
    value = f", value {trial.value!r}" if trial.value is not None else ""
    value += f", {objectives_text(trial)}" if trial.objectives else ""
    value += f", {infeasible_text(trial)}" if trial.excess else ""
    state = f"queued as {page['name']}" if is_queued else str(trial.state)
    yield f"{trial.label}: {state}{value}{_in(trial.seconds)}"
    for name in trial.constraints:
        yield f"  {name}: {constraint_text(trial, name)}"
    for name, values in trial.params.items():
        yield f"  {name}: {', '.join(format_value(value) for value in values)}"
    for number, reached in enumerate(trial.rungs, 1):
        if not math.isnan(reached):
            yield f"Rung {number}: {format_value(reached)}"
    for text in page.get("require", ()):
        yield f"Require: {text}{' (violated)' if text in page['violates'] else ''}"
    if trial.reason:
        yield f"Reason: {plain(trial.reason)}"
    if trial.tags:
        yield f"Tags: {' '.join(trial.tags)}"
    for note in trial.notes:
        yield f"Note: {plain(note)}"
    for number, attempt in enumerate(page["attempts"], 1):
        yield f"Job {number}: {_attempt(attempt)}"
        if use := attempt.get("gpu_use"):
            yield from (f"  {line}" for line in use_lines(use))
    if page["curve"]:
        yield f"Curve: {curve_line(list(page['curve'].values()), bars=bars)}"
        yield f"  steps {next(iter(page['curve']))} to {list(page['curve'])[-1]}"
    yield f"Folder: {page['folder']}"
    yield f"Output: {page['log']}"
    for line in page["tail"].splitlines():
        yield f"  {plain(line)}"


def _in(seconds: float | None) -> str:
    return "" if seconds is None else f", {format_duration(seconds)}"


def _attempt(attempt: Mapping[str, Any]) -> str:
    """Return ``job 4711 on node001, GPU 0, 2.1 s: killed``."""
    process = f"process {attempt['pid']}" if "pid" in attempt else "no process"
    job = f"job {attempt['job']}" if attempt.get("job") else process
    host = f" on {attempt['host']}" if "host" in attempt else ""
    gpus = f", GPU {attempt['gpus']}" if attempt.get("gpus") else ""
    reason = f": {plain(str(attempt['reason']))}" if attempt.get("reason") else ""
    return f"{job}{host}{gpus}{_in(attempt.get('seconds'))}{reason}"


def curve_line(values: Sequence[float], *, bars: bool = True) -> str:
    """Return the first, the lowest and the last value, and bars of at most 60 values."""
    every = -(-len(values) // _MOST_BARS)
    shown = values[::-1][::every][::-1]
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    drawn = "".join(_BARS[round((value - low) * scale)] for value in shown) + " "
    ends = f"{format_value(values[0])} to {format_value(values[-1])}"
    ends = f"{ends}, lowest {format_value(min(values))}, highest {format_value(max(values))}"
    return f"{drawn}{ends}" if bars else ends
