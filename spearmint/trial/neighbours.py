"""Trials that share a GPU by NVIDIA MPS: a fatal GPU error of one ends the others, too.

MPS writes the process that caused the error into ``server.log`` of the daemon's directory. A trial
that failed because of another process is rerun.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from spearmint.layout import TrialFolder, read_json, write_json
from spearmint.trial.environment import LOCK_FD

MOST_RERUNS = 3
_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_LOG = "server.log"
_LIMIT = 1 << 20
_PAUSE_S = 2.0  # MPS ends its clients and resets the GPU
_FATAL = re.compile(
    r"^\[(\S+ [0-9:.]+) .*Client \{PID: (\d+),.*encountered a fatal GPU error",
    re.MULTILINE,
)


def culprit(started: float, environment: Mapping[str, str] = os.environ) -> int:
    """Return the process that ended all CUDA programs on the shared GPU since ``started``.

    0 if there is none, or if it is this process, or if the GPU is not shared.
    """
    pipes = environment.get(_PIPES)
    if not pipes:
        return 0
    try:
        with Path(pipes, _LOG).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LIMIT))
            text = file.read(_LIMIT).decode("utf-8", "replace")
    except OSError:
        return 0
    found = [int(pid) for at, pid in _FATAL.findall(text) if _seconds(at) >= started]
    return 0 if os.getpid() in found else next(iter(found), 0)


def may_rerun(folder: TrialFolder) -> bool:
    """Count a run that a neighbour ended; return whether the trial may be rerun."""
    path = folder.path / "neighbours.json"
    count = (read_json(path) or {}).get("reruns", 0) + 1
    write_json(path, {"reruns": count})
    return bool(count <= MOST_RERUNS)


def run_again(folder: TrialFolder, environment: Mapping[str, str], lock: int) -> NoReturn:
    """Replace this process by a new runner of the trial, which keeps the lock.

    Args:
        environment: Variables with which this runner was started.
    """
    os.set_inheritable(lock, True)
    time.sleep(_PAUSE_S)
    argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", str(folder.path)]
    os.execve(sys.executable, argv, {**environment, LOCK_FD: str(lock)})  # noqa: S606


def _seconds(text: str) -> float:
    """Return the time of a line, which is local time."""
    return datetime.fromisoformat(text).timestamp()
