"""How busy the GPUs of trials were, in words, with what to do if they waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spearmint.formatting import format_duration, plain
from spearmint.layout import Layout, read_json
from spearmint.model import Trial, TrialState
from spearmint.trial.gpu_use import gpu_use_of

PAGE = "docs/how_to/gpu_busy.rst"
LATEST = 20
"""Trials of each state, the last ones, of which a summary tells."""

SUMMARISED = (TrialState.RUNNING, TrialState.PAUSED, TrialState.COMPLETE)
"""These states."""

_MUCH = 0.3  # share of the time that a GPU waited
_LEAST_S = 20.0  # shorter trials say little
_UNEVEN = 0.2  # between the GPUs of a trial
_FIX = "use more loader workers or a larger batch, or decode the images once"


@dataclass(frozen=True, slots=True)
class GpuSummary:
    """The mean of trials, each with the weight of its duration.

    Attributes:
        trials: Their number.
        busy: Share of the time in which a kernel ran, 0 to 1.
        shared: Whether other jobs used the GPUs, too.
        seconds: Time of all trials since the first use of their GPUs.
    """

    trials: int
    busy: float
    shared: bool
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the summary for ``--json``."""
        return {"gpu_busy": round(self.busy, 4), "trials": self.trials, "shared": self.shared}


def gpu_use(layout: Layout, trial: Trial) -> dict[str, Any] | None:
    """Return how the last job of a trial used its GPUs; None if that is not known."""
    folder = layout.folder(trial.id)
    try:
        if not folder.gpu_use.exists():  # most searches: one look at each trial
            return None
        return gpu_use_of(folder, (read_json(folder.runner) or {}).get("start"))
    except OSError:
        return None


def gpu_uses(layout: Layout, trials: Iterable[Trial]) -> dict[int, dict[str, Any]]:
    """Return how trials used their GPUs by trial, without those of which it is not known."""
    found = {trial.id: gpu_use(layout, trial) for trial in trials}
    return {number: use for number, use in found.items() if use is not None}


def latest(trials: Sequence[Trial]) -> list[Trial]:
    """Return the last 20 trials that run, the last 20 paused ones and the last 20 complete ones."""
    by_state = [[trial for trial in trials if trial.state is state] for state in SUMMARISED]
    return [trial for some in by_state for trial in some[-LATEST:]]


def summary_of(uses: Iterable[Mapping[str, Any]]) -> GpuSummary | None:
    """Return the mean of trials; None if none measured its GPUs."""
    known = [use for use in uses if use["gpu_busy"] is not None]
    weights = [max(1.0, use["seconds"] - (use["first_use_s"] or 0.0)) for use in known]
    if not known:
        return None
    total = sum(use["gpu_busy"] * weight for use, weight in zip(known, weights, strict=True))
    shared = any(use["shared"] for use in known)
    return GpuSummary(len(known), total / sum(weights), shared, sum(weights))


def summary_lines(summary: GpuSummary | None) -> list[str]:
    """Return ``GPU busy 58 % (mean of 9 trials)`` and what to do; empty if nothing is known."""
    if summary is None:
        return []
    trials = f"mean of {summary.trials} trials" if summary.trials > 1 else "1 trial"
    line = f"GPU busy {busy_text(summary.busy)} ({trials})"
    if summary.shared:
        return [f"{line}, shared with other jobs"]
    return [line, *_advice(summary.busy, summary.seconds)]


def use_lines(use: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``GPU busy 58 %, first used after 12 s, memory 4.1 of 80 GiB``, and what to do."""
    busy, first = use["gpu_busy"], use["first_use_s"]
    parts = [] if busy is None else [f"GPU busy {busy_text(busy)}{_each(use)}"]
    if first is not None:
        parts.append(f"first used after {format_duration(first)}")
    most = max(use["gpus"], key=lambda gpu: float(gpu["memory_mib"]))
    if most["memory_total_mib"]:
        used, total = most["memory_mib"] / 1024, most["memory_total_mib"] / 1024
        parts.append(f"{'memory' if parts else 'GPU memory'} {used:.1f} of {total:.0f} GiB")
    if use["shared"]:
        parts.append("shared with other jobs")
    if parts:
        yield ", ".join(parts)
    if busy is not None and not use["shared"]:
        yield from _advice(busy, use["seconds"] - (first or 0.0), is_used=first is not None)


def _advice(busy: float, seconds: float, *, is_used: bool = True) -> Iterator[str]:
    if seconds < _LEAST_S or busy > 1.0 - _MUCH:
        return
    if not is_used or busy == 0.0:
        yield f'The GPU was not used: move model and data to "cuda", or use --gpus=0 ({PAGE})'
    else:
        yield f"GPU waited {busy_text(1.0 - busy)} for data or CPU work: {_FIX} ({PAGE})"


def _each(use: Mapping[str, Any]) -> str:
    """Return the utilisation of each GPU if they differ much."""
    known = [gpu for gpu in use["gpus"] if gpu["busy"] is not None]
    shares = [float(gpu["busy"]) for gpu in known]
    if max(shares) - min(shares) < _UNEVEN:
        return ""
    texts = (f"{plain(gpu['gpu'])}: {busy_text(gpu['busy'])}" for gpu in known)
    return f" ({', '.join(texts)})"


def busy_text(share: float) -> str:
    """Return ``58 %``."""
    return f"{100 * share:.0f} %"
