"""Run Slurm's commands: remove what changes their output, and recognise a silent controller."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from spearmint.drivers.queue_commands import Answer, job_environment, run_command
from spearmint.errors import DriverUnreachable

# Other variables of these names are options of a command, or describe the job that runs spearmint.
_PREFIXES = ("SLURM", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_", "SACCT_", "SCONTROL_", "SALLOC_")
_CLUSTER = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_UNAVAILABLE_TIMEOUT")
_UNREACHABLE = re.compile(
    r"unable to contact slurm controller|connect failure|connection refused|timed out"
    r"|backup controller in standby|zero bytes were transmitted|munge (en|de)code failed"
    r"|protocol authentication error|invalid authentication credential|communication (connection )?"
    r"failure|message (receive|send) failure|unable to establish configuration source"
    r"|unable to resolve|transport endpoint|controller is (currently )?(in|re)",
    re.IGNORECASE,
)


def ask(name: str, *arguments: str, stdin: bytes = b"", inherit: Sequence[int] = ()) -> Answer:
    """Run a command of Slurm.

    Args:
        inherit: File descriptors that the command inherits.

    Raises:
        DriverUnreachable: The command does not exist or times out, or slurmctld does not answer.
    """
    # sbatch gives its own environment to the job.
    answer = run_command(
        [name, *arguments],
        env=job_environment(*_CLUSTER) if name == "sbatch" else _query_environment(),
        missing="Run this on a login node of the cluster (Debian: apt-get install slurm-client).",
        silent=_FIX,
        stdin=stdin,
        inherit=inherit,
    )
    if answer.status and _UNREACHABLE.search(answer.err):
        raise DriverUnreachable(f"Slurm's controller does not respond: {words(answer.err)}", _FIX)
    return answer


_FIX = (
    "It may be restarting; no job is lost. See: scontrol ping."
    " Restart it as root: systemctl restart slurmctld"
)


def words(err: str) -> str:
    """Return the lines of standard error without the command's name, as one line."""
    lines = (re.sub(r"^\w+: (error: )?", "", line).strip() for line in err.splitlines())
    return "; ".join(dict.fromkeys(filter(None, lines)))


def _query_environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _CLUSTER or not name.startswith(_PREFIXES)
    }
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC0"}
