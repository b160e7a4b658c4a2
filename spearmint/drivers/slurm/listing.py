"""Parse what squeue and sinfo print."""

from __future__ import annotations

import re

from spearmint.drivers.queue import QueueHost, QueueJob, QueueJobState

# Columns of a fixed width: the names of jobs can contain any separator. The layout is the same in
# every version, and that of --json is not.
_COLUMNS = (("JobID", 24), ("State", 24), ("RestartCnt", 12), ("NodeList", 256), ("Reason", 64))
FORMAT = ",".join(f"{name}:{width}" for name, width in (*_COLUMNS, ("Name", 256)))
"""Argument of ``squeue --Format``."""

_STATES = {
    "PENDING": QueueJobState.PENDING,
    "CONFIGURING": QueueJobState.PENDING,  # its hosts boot
    "REQUEUED": QueueJobState.PENDING,
    "REQUEUE_HOLD": QueueJobState.HELD,
    "RESV_DEL_HOLD": QueueJobState.HELD,
    "SPECIAL_EXIT": QueueJobState.ERROR,
    "SUSPENDED": QueueJobState.SUSPENDED,
    "STOPPED": QueueJobState.SUSPENDED,
    "COMPLETING": QueueJobState.ENDING,
}
_HELD = ("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue")
_ERRORS = ("launch failed requeued held", "launch_failed_requeued_held")
HOSTS = "%N|%T|%c|%G|%P"
"""Argument of ``sinfo --format``."""

_USABLE = re.compile(r"(idle|mixed|allocated|completing|planned)[+~#]?", re.IGNORECASE)
_GPU = re.compile(r"(?:^|,)gpu(?::[^:,(]+)?:(\d+)")


def parse_jobs(text: str) -> list[QueueJob]:
    """Return the jobs in the output of ``squeue --noheader --Format=FORMAT``."""
    jobs = []
    for line in text.splitlines():
        begin, fields = 0, []
        for _, width in _COLUMNS:
            fields.append(line[begin : begin + width].strip())
            begin += width
        if fields[0][:1].isdigit():
            jobs.append(_job(*fields, name=line[begin:].strip()))
    return jobs


def _job(id: str, state: str, restarts: str, host: str, reason: str, *, name: str) -> QueueJob:
    is_rerun = restarts not in ("", "0")
    found = _STATES.get(state, QueueJobState.RUNNING)
    if found is QueueJobState.PENDING:
        found = _waiting(reason, is_rerun)
    text = f"{state} {reason}" if found in _WHY else state
    token = name.rpartition("-")[2]
    return QueueJob(id=id, token=token, state=found, text=text, host=host, is_rerun=is_rerun)


_WHY = (QueueJobState.HELD, QueueJobState.ERROR, QueueJobState.PREEMPTED)


def _waiting(reason: str, is_rerun: bool) -> QueueJobState:
    if reason in _ERRORS:
        return QueueJobState.ERROR
    if reason in _HELD:
        return QueueJobState.HELD
    if is_rerun and reason == "BeginTime":  # two minutes after it lost its host
        return QueueJobState.PREEMPTED
    return QueueJobState.PENDING


def parse_hosts(text: str, partitions: str) -> list[QueueHost]:
    """Return the hosts that accept jobs, from ``sinfo --Node --noheader --format=HOSTS``.

    Args:
        partitions: Names with commas; empty for the default partition.
    """
    wanted = set(filter(None, partitions.split(",")))
    hosts = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != 5 or not _USABLE.fullmatch(fields[1]):
            continue
        name, _, slots, gres, partition = fields
        is_default = partition.endswith("*")
        if partition.rstrip("*") in wanted if wanted else is_default:
            gpus = sum(int(count) for count in _GPU.findall(gres))
            hosts[name] = QueueHost(name=name, slots=int(slots), gpus=gpus)
    return list(hosts.values())
