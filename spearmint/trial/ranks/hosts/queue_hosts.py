"""The hosts of a job, and the command by which its queue starts a process on one of them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PREFIXES = ("SLURM", "SGE_", "SPEARMINT_LOCK")
_OF_THIS_HOST = {
    *("ARC", "CUDA_VISIBLE_DEVICES", "ENVIRONMENT", "GPU_DEVICE_ORDINAL", "HOSTNAME", "JOB_ID"),
    *("JOB_NAME", "JOB_SCRIPT", "NHOSTS", "NQUEUES", "NSLOTS", "OLDPWD", "PE", "PE_HOSTFILE"),
    *("PWD", "QUEUE", "REQNAME", "REQUEST", "RESTARTED", "ROCR_VISIBLE_DEVICES", "SHLVL"),
    *("TASK_ID", "TMP", "TMPDIR", "ZE_AFFINITY_MASK", "_"),
}
# What Python needs before it can read its task.
_FOR_PYTHON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")


def hosts_of_job() -> list[str]:
    """Return the hosts of this job, this one first.

    Raises:
        OSError: The queue does not say.
    """
    if listed := os.environ.get("PE_HOSTFILE"):
        lines = Path(listed).read_text().splitlines()
        return list(dict.fromkeys(line.split()[0] for line in lines if line.strip()))
    if nodes := os.environ.get("SLURM_JOB_NODELIST"):
        argv = ["scontrol", "show", "hostnames", nodes]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"scontrol show hostnames failed: {done.stderr.strip()}")
        return done.stdout.split()
    raise OSError("this process has no hosts of Slurm or a parallel environment of Grid Engine")


def client_argv(host: str, argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` on another host of this job, with its input."""
    if "PE_HOSTFILE" in os.environ:
        found = [f"{name}={os.environ[name]}" for name in _FOR_PYTHON if name in os.environ]
        words = map(shlex.quote, ["/usr/bin/env", *found, *argv])  # for the login shell there
        return ["qrsh", "-inherit", host, *words]
    # The step gets what the job has on this host, also its GPUs, and shares it with other steps.
    step = ["--nodes=1", "--ntasks=1", f"--nodelist={host}", "--overlap", "--chdir=/"]
    return ["srun", *step, "--unbuffered", "--quiet", *argv]


def shared_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are the same on all hosts of a job."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_THIS_HOST and not name.startswith(_PREFIXES)
    }
