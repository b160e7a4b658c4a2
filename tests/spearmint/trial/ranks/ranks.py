"""Trials in several processes, by the stand-in for torch next to this file."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil

from spearmint.layout import PROCESSES, TrialFolder, write_json
from spearmint.trial.environment import TRIAL_DIR

STAND_IN = Path(__file__).parent / "stand_in"

# Each rank ignores SIGTERM and starts a process in another session, as a data loader could.
STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
from torch.distributed import all_reduce

def main(job_id, params):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "600"], start_new_session=True, preexec_fn=lambda: signal.signal(
        signal.SIGTERM, signal.SIG_IGN))
    rank = int(os.environ["RANK"])
    all_reduce(1.0)
    (pathlib.Path(os.environ["SPEARMINT_TRIAL_DIR"]) / f"ready{rank}").touch()
    FAIL
    all_reduce(1.0)
    return 1.0
"""


class Trial:
    """A trial of ``n`` ranks in a directory.

    Attributes:
        folder: Its folder.
    """

    def __init__(
        self, root: Path, code: str, n: int = 2, trial_id: int = 7, **more: object
    ) -> None:
        self.n = n * int(more.get("nodes", 1))
        self.folder = TrialFolder(root / "jobs" / f"{trial_id:08d}")
        (root / "wrapper.py").write_text(code)
        self.folder.path.mkdir(parents=True)
        named = {"directory": str(root), "name": "wrapper", "language": "PYTHON"}
        spec = {"key": "k", "job_id": trial_id, "params": {}, PROCESSES: n, **named, **more}
        write_json(self.folder.spec, spec)

    def start(self, torch: Path | None = STAND_IN, **environment: str) -> subprocess.Popen[str]:
        """Start the runner, as a driver does."""
        paths = [str(torch)] if torch else []
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "spearmint.trial.runner", str(self.folder.path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, torch: Path | None = STAND_IN, **environment: str) -> tuple[dict, str]:
        """Run the trial to its end; return result.json and the output."""
        with self.start(torch, **environment) as runner:
            output = runner.communicate()[0]
        assert runner.returncode == 0, output
        return json.loads(self.folder.result.read_text()), output

    def is_ready(self) -> bool:
        """Return whether all ranks of STUBBORN have met."""
        return all((self.folder.files / f"ready{rank}").exists() for rank in range(self.n))

    def processes(self, part: str = "", variable: str = "") -> list[psutil.Process]:
        """Return what runs for the trial, or those with ``part`` in their command line."""
        return processes_of(self.folder, part, variable)


def processes_of(folder: TrialFolder, part: str = "", variable: str = "") -> list[psutil.Process]:
    """Return what runs for the trial in ``folder``.

    Args:
        part: Only processes with this text in their command.
        variable: Only processes that have this environment variable.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            own = process.environ()
            marked = own.get(TRIAL_DIR) == str(folder.files) and (not variable or variable in own)
            if marked and part in " ".join(process.cmdline()):
                found.append(process)
    return found
