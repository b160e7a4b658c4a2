"""Parse the output of ``qhost``."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from sge_jobs.model import Host, JobStatus, QueuedJob, QueueInstance
from sge_jobs.queue.qstat import read_xml

_WITH_A_GPU = {JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.ENDING}


def parse_hosts(xml: str, jobs: Iterable[QueuedJob]) -> list[Host]:
    """Return the rows of ``qhost -xml -q -F gpu,gpu_share,gpu_state,gpu_fault``.

    Args:
        jobs: Jobs of all users; they give the number of GPUs in use, because qhost shows only how
            many are left.

    Raises:
        ValueError: ``xml`` is not an output of qhost.
    """
    used: dict[str, list[float]] = {}
    for job in jobs:
        if job.host and job.status in _WITH_A_GPU:
            used.setdefault(short_name(job.host), []).append(job.gpus)
    rows = read_xml(xml, "qhost").iter("host")
    return [_host(row, used) for row in rows if row.get("name") != "global"]


def short_name(host: str) -> str:
    """Return ``host`` without its domain, which only some of the commands print."""
    return host.partition(".")[0].lower()


def _host(row: Element, used: dict[str, list[float]]) -> Host:
    values = {value.get("name", ""): (value.text or "").strip() for value in row.iter("hostvalue")}
    resources = {
        value.get("name"): (value.text or "").strip() for value in row.iter("resourcevalue")
    }
    name = row.get("name", "")
    requests = used.get(short_name(name), [])
    gpus_used = sum(int(request) for request in requests)
    shares_used = round(sum(request for request in requests if request < 1), 2)
    left = _number(resources.get("gpu", ""))
    shares_left = _number(resources.get("gpu_share", ""))
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
        gpu_shares=None if shares_left is None else round(shares_left + shares_used, 2),
        gpu_shares_used=shares_used,
        gpu_state=resources.get("gpu_state", ""),
        gpu_fault=resources.get("gpu_fault", ""),
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
