"""Slurm's commands for a job of two hosts, both of which are this machine."""

from __future__ import annotations

from pathlib import Path

HOSTS = ("localhost", "127.0.0.1")

_SCONTROL = f"#!/bin/sh\nprintf '%s\\n' {' '.join(HOSTS)}\n"
# The step is in a session of its own, as a child of slurmstepd is: it continues after srun.
_SRUN = """#!/usr/bin/env python3
import os, signal, subprocess, sys
step = [word for word in sys.argv[1:] if not word.startswith("--")]
if "SILENT_STEPS" in os.environ:
    code = "import sys; from spearmint.trial.ranks.hosts import agent; agent._SILENT_STEPS = "
    step = [step[0], "-P", "-c", f"{code}{os.environ['SILENT_STEPS']}; sys.exit(agent.main())"]
own = {"SLURM_STEP": "1", "CUDA_VISIBLE_DEVICES": "7"}
child = subprocess.Popen(step, env={**os.environ, **own}, start_new_session=True, cwd="/")
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
sys.exit(child.wait())
"""


def write_commands(folder: Path) -> dict[str, str]:
    """Write the commands into ``folder``; return the variables of a job."""
    folder.mkdir()
    for name, text in (("scontrol", _SCONTROL), ("srun", _SRUN)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {"SLURM_JOB_NODELIST": "two", "PATH": f"{folder}:/usr/bin:/bin"}
