"""Jobs of several trials, which the real runner runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from spearmint.layout import BATCH, JOB, SPECS, Layout, write_json


def prepare(root: Path, code: str, ids: tuple[int, ...], **more: object) -> list[str]:
    """Write the folders of a job; return the command of its runner."""
    (root / "wrapper.py").write_text(code)
    layout = Layout(root)
    specs = []
    common = {"directory": str(root), "name": "wrapper", "language": "PYTHON", "region": ""}
    for n in ids:
        folder = layout.folder(n)
        folder.path.mkdir(parents=True)
        x = {"x": {"kind": "FLOAT", "values": [n / 10]}}
        spec = {**common, "key": f"k{n}", "job_id": n, "params": x, JOB: ids[0], **more}
        write_json(folder.spec, spec)
        specs.append(spec)
    job = layout.batch(ids[0])
    job.path.mkdir(parents=True)
    spec = {**common, "key": "k", "job_id": ids[0], "params": {}, BATCH: ids, SPECS: specs}
    write_json(job.spec, spec)
    return [sys.executable, "-m", "spearmint.trial.runner", str(job.path)]


def run(root: Path, code: str, ids: tuple[int, ...] = (1, 2, 3), **more: object) -> str:
    """Run a job to its end; return its output."""
    argv = prepare(root, code, ids, **more)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def result(root: Path, n: int) -> dict[str, Any]:
    return json.loads(Layout(root).folder(n).result.read_text())
