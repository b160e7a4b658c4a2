"""The experiment: trials that record their runs in one file outside their directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = 'language: PYTHON\nname: "trial"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'

# Each line is one write, so that lines of concurrent trials do not mix.
CODE = """
import contextlib, json, os, random, socket, time, uuid
from pathlib import Path

RECORDS, STEPS, STEP_S = {records!r}, {steps}, 0.5

def main(job_id, params):
    run, file = uuid.uuid4().hex, os.open(RECORDS, os.O_WRONLY | os.O_APPEND)
    def note(**what):
        line = json.dumps({{"run": run, "time": time.time(), **what}})
        os.write(file, line.encode() + b"\\n")
    checkpoint = Path(os.environ["SPEARMINT_TRIAL_DIR"]) / "step"
    first = int(checkpoint.read_text()) if checkpoint.exists() else 0
    gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    note(trial=job_id, host=socket.gethostname(), gpus=gpus)
    for step in range(first, STEPS):
        time.sleep(STEP_S)
        note()
        with contextlib.suppress(OSError):
            checkpoint.with_suffix(".new").write_text(str(step + 1))
            checkpoint.with_suffix(".new").replace(checkpoint)
    value = random.SystemRandom().random()
    note(value=value)
    return value
"""


@dataclass
class Run:
    """One run of a trial.

    Attributes:
        began, seen: Seconds since the epoch of its first and its last line.
        value: Its result; None if it did not reach its end.
    """

    trial: int
    host: str
    gpus: list[str]
    began: float
    seen: float
    value: float | None = None

    @property
    def devices(self) -> Iterator[str]:
        """The GPUs that it used, with the host."""
        return (f"{self.host}/{gpu}" for gpu in self.gpus)


@dataclass(frozen=True)
class Records:
    """The lines that trials have written to ``path``."""

    path: Path

    def runs(self) -> list[Run]:
        """Return every run so far, the oldest first."""
        found: dict[str, Run] = {}
        for line in self.path.read_text().splitlines():
            note: dict[str, Any] = json.loads(line)
            if "trial" in note:
                began = note["time"]
                run = Run(note["trial"], note["host"], note["gpus"], began, began)
                found[note["run"]] = run
            run = found[note["run"]]
            run.seen, run.value = note["time"], note.get("value")
        return sorted(found.values(), key=lambda run: run.began)
