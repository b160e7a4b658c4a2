"""Read how many GPUs a job requested, and which GPUs Grid Engine 9 granted."""

from __future__ import annotations

from sge_jobs.node.queries import QueryFailed, ask, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_RESOURCE_LISTS = ("hard resource list", "global hard resource list")


def query_job(job: str, environment: Mapping[str, str]) -> str:
    """Return the output of ``qstat -j JOB``. Raises QueryFailed."""
    return ask([find_program("qstat", environment), "-j", job], environment)


def granted_devices(environment: Mapping[str, str]) -> list[str]:
    """Return the indices or UUIDs in ``SGE_HGR_gpu``, set by Grid Engine 9; empty without it."""
    return environment.get("SGE_HGR_gpu", "").replace(",", " ").split()


def requested_gpus(qstat: str) -> int:
    """Return N of ``-l gpu=N`` in the output of ``qstat -j``; 0 without such a request.

    Raises:
        QueryFailed: The output does not describe a job.
        ValueError: N is not a number.
    """
    if "job_number:" not in qstat:
        raise QueryFailed(f"qstat -j printed: {qstat.strip()[:200] or 'nothing'}")
    for line in qstat.split("\n"):
        key, _, value = line.partition(":")
        if key.strip().replace("_", " ") in _RESOURCE_LISTS:
            return _gpus_in(value)
    return 0


def _gpus_in(resources: str) -> int:
    for item in resources.replace(" ", ",").split(","):
        name, _, value = item.partition("=")
        if name == "gpu":
            number = value.partition(".")[0]
            if not number.isdigit():
                raise ValueError(f"the job requests gpu={value}, which is not a number")
            return int(number)
    return 0
