"""Parse the output of ``qhost``."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from sge_jobs.model import Host, JobStatus, QueuedJob, QueueInstance
from sge_jobs.queue.qstat import read_xml

_WITH_A_GPU = {JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.ENDING}


def parse_hosts(xml: str, jobs: Iterable[QueuedJob]) -> list[Host]:
    """Return the rows of ``qhost -xml -q -F gpu,gpu_state``.

    Args:
        jobs: Jobs of all users; they give the number of GPUs in use, because qhost shows only how
            many are left.

    Raises:
        ValueError: ``xml`` is not an output of qhost.
    """
    used: dict[str, int] = {}
    for job in jobs:
        if job.host and job.status in _WITH_A_GPU:
            used[short_name(job.host)] = used.get(short_name(job.host), 0) + job.gpus
    rows = read_xml(xml, "qhost").iter("host")
    return [_host(row, used) for row in rows if row.get("name") != "global"]


def short_name(host: str) -> str:
    """Return ``host`` without its domain, which only some of the commands print."""
    return host.partition(".")[0].lower()


def _host(row: Element, used: dict[str, int]) -> Host:
    values = {value.get("name", ""): (value.text or "").strip() for value in row.iter("hostvalue")}
    resources = {
        value.get("name"): (value.text or "").strip() for value in row.iter("resourcevalue")
    }
    name = row.get("name", "")
    gpus_used = used.get(short_name(name), 0)
    left = _number(resources.get("gpu", ""))
    load = _number(values.get("load_avg", ""))
    queues = tuple(_queue(queue) for queue in row.iter("queue"))
    return Host(
        name=name,
        reachable=load is not None,
        cores=int(_number(values.get("num_proc", "")) or 0),
        slots=sum(queue.slots for queue in queues),
        slots_used=sum(queue.slots_used for queue in queues),
        load=load,
        gpus=None if left is None else round(left) + gpus_used,
        gpus_used=gpus_used,
        gpu_state=resources.get("gpu_state", ""),
        queues=queues,
    )


def _queue(row: Element) -> QueueInstance:
    values = {value.get("name", ""): (value.text or "").strip() for value in row.iter("queuevalue")}
    return QueueInstance(
        name=row.get("name", ""),
        slots=int(_number(values.get("slots", "")) or 0),
        slots_used=int(_number(values.get("slots_used", "")) or 0),
        state=values.get("state_string", ""),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
