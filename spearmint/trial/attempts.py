"""The jobs of a trial: earlier ones that ended without a result, and the last one."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any

from spearmint.layout import TrialFolder, read_json
from spearmint.trial.gpu_use import gpu_use_of

_FACTS = ("job", "host", "pid", "gpus", "start")


def add_attempt(
    folder: TrialFolder, end: str, *, job: str = "", seconds: float | None = None
) -> None:
    """Record how a job ended whose trial is retried or paused; a full disk only loses the record.

    A job that is recorded already is not recorded twice.

    Args:
        folder: The trial, with what the runner of the job wrote.
        end: How it ended, in one line.
        job: Its id for the driver, if it is known.
        seconds: Its run time.
    """
    runner = read_json(folder.runner) or {}
    facts = _facts(folder, runner)
    if "start" in facts and any(facts["start"] == a.get("start") for a in _recorded(folder)):
        return
    line = {"job": job, **facts, "seconds": seconds, "ended": time.time(), "reason": end}
    with contextlib.suppress(OSError), folder.attempts.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read_attempts(folder: TrialFolder) -> list[dict[str, Any]]:
    """Return the jobs that ran the trial, the oldest first; the last can still run.

    Each has those of the keys ``job``, ``host``, ``pid``, ``gpus``, ``start``, ``seconds``,
    ``reason`` and ``gpu_use`` (:func:`~spearmint.trial.gpu_use.gpu_use_of`) that are known.
    """
    found = _recorded(folder)
    runner = None
    with contextlib.suppress(OSError):
        runner = read_json(folder.runner)
    if runner is not None and all(runner.get("start") != known.get("start") for known in found):
        found.append(_facts(folder, runner))
    return found


def _recorded(folder: TrialFolder) -> list[dict[str, Any]]:
    """Return the jobs that ``add_attempt`` recorded."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError):
        for line in folder.attempts.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                content = json.loads(line)
                if isinstance(content, dict):
                    found.append(content)
    return found


def _facts(folder: TrialFolder, runner: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the runner of the last job recorded, with how busy its GPUs were."""
    facts = {name: runner[name] for name in _FACTS if name in runner}
    use = gpu_use_of(folder, runner.get("start"))
    return facts if use is None else {**facts, "gpu_use": use}
