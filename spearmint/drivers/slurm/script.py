"""The bash script of a job."""

from __future__ import annotations

from spearmint.drivers import job_setup
from spearmint.drivers.queue import SubmitSpec

RERUN = 99
"""Exit status of the trial's process with which the job goes back to the queue."""

# The job goes back to the queue, once. Slurm waits two minutes before it starts the job again.
_GIVE_UP = """\
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] && scontrol requeue "$SLURM_JOB_ID" && sleep 60
    exit 1"""
# A job without GPUs sees those of other jobs, unless the cluster confines devices.
_NO_GPUS = '[ -n "${SLURM_JOB_GPUS-}${CUDA_VISIBLE_DEVICES-}" ] || export CUDA_VISIBLE_DEVICES='


def job_script(spec: SubmitSpec) -> str:
    """Return the script; raises InputError if bash could not run it.

    Slurm ends every process of a job only if it tracks them by cgroups, and --signal=B:USR1@60
    reaches only the job's first process: the shepherd does both.
    """
    rerun = '"scontrol requeue $SLURM_JOB_ID"'
    return job_setup.job_script(spec, exports=[_NO_GPUS], rerun=rerun, give_up=_GIVE_UP)
