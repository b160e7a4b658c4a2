"""Parse the output of ``qstat``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from xml.etree import ElementTree

from sge_jobs.model import JobStatus, QueuedJob

_REASON = re.compile(r"^error reason\s+\d*:\s*(.+?)\s*$", re.MULTILINE)
_STAMP = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d \[\d+:\d+\]: (?:error: )?")


def parse_jobs(xml: str) -> list[QueuedJob]:
    """Return the rows of ``qstat -xml -r``, whose times must be UTC.

    Raises:
        ValueError: ``xml`` is not an output of qstat.
    """
    root = read_xml(xml, "job_info")
    # If a user's .sge_qstat has -f, running jobs are listed under their queue.
    places = {
        row: queue.findtext("name", "")
        for queue in root.iter("Queue-List")
        for row in queue.iter("job_list")
    }
    return [_job(row, places.get(row, "")) for row in root.iter("job_list")]


def parse_error_reason(text: str) -> str:
    """Return why a job is in the error state E, from ``qstat -j``; empty if it is not."""
    reasons = [_STAMP.sub("", reason) for reason in _REASON.findall(text)]
    return "; ".join(dict.fromkeys(reasons))


def job_status(state: str) -> JobStatus:
    """Return the status for the letters of ``qstat``."""
    if "d" in state:
        return JobStatus.ENDING
    if "E" in state:
        return JobStatus.ERROR
    if any(letter in state for letter in "sST"):
        return JobStatus.SUSPENDED
    if "r" in state or "t" in state:
        return JobStatus.RUNNING
    return JobStatus.HELD if "h" in state else JobStatus.PENDING


def read_xml(xml: str, root_name: str) -> ElementTree.Element:
    """Return the root of a command's output; ValueError for incomplete or other XML."""
    # Grid Engine 8.1.9 writes "%lt;" instead of "&lt;".
    try:
        root = ElementTree.fromstring(xml.replace("%lt;", "&lt;"))  # noqa: S314
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    if root.tag != root_name:
        raise ValueError(f"expected <{root_name}>, not <{root.tag}>")
    return root


def _job(row: ElementTree.Element, place: str) -> QueuedJob:
    texts = {field.tag: (field.text or "").strip() for field in row}
    state = texts.get("state", "")
    queue, _, host = (texts.get("queue_name") or place).partition("@")
    return QueuedJob(
        id=texts.get("JB_job_number", ""),
        task=texts.get("tasks", ""),
        name=texts.get("full_job_name") or texts.get("JB_name", ""),
        owner=texts.get("JB_owner", ""),
        state=state,
        status=job_status(state),
        queue=queue,
        host=host,
        slots=int(texts.get("slots") or 1),
        since=_seconds(texts.get("JAT_start_time") or texts.get("JB_submission_time", "")),
        gpus=_gpus(field for field in row if field.tag == "hard_request"),
    )


def _gpus(requests: Iterable[ElementTree.Element]) -> int:
    wanted = [float(field.text or 0) for field in requests if field.get("name") == "gpu"]
    return int(max(wanted, default=0))


def _seconds(stamp: str) -> float:
    if not stamp:
        return 0.0
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
