"""Parse the output of ``qstat``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache, lru_cache
from xml.etree import ElementTree

from sge_jobs.model import JobStatus, QueuedJob
from sge_jobs.node.failed_start import FailedStart
from sge_jobs.node.failed_start import find as find_failed_start

_PLACE = re.compile(r"<(?:JB_job_number|queue_name|tasks)>[^<]*")
_IS_PLACED = re.compile(r"<queue_name>[^<]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_TASK_TAG = re.compile(r"<(/?)JATASK:[^>]*>")
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


def parse_error_reason(xml: str) -> str:
    """Return why a job is in the error state E, from ``qstat -xml -j``; empty if it is not.

    Raises:
        ValueError: ``xml`` is not an output of qstat.
    """
    messages = read_xml(xml, "").iter("QIM_message")
    reasons = [_STAMP.sub("", (message.text or "").strip()) for message in messages]
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def placed_jobs(xml: str) -> list[str]:
    """Return a text for each job on a host in ``qstat -xml -r``, without parsing the rest."""
    return sorted(
        "".join(_PLACE.findall(row)) for row in xml.split("</job_list>") if _IS_PLACED.search(row)
    )


def parse_failed_starts(xml: str) -> dict[str, FailedStart]:
    """Return the last failed start of each job in the output of ``qstat -xml -j``, by number.

    The host is empty if only Grid Engine gives a reason.

    Raises:
        ValueError: ``xml`` is not an output of qstat.
    """
    found: dict[str, FailedStart] = {}
    for row in read_xml(xml, "").iterfind("djob_info/element"):
        number, details = row.findtext("JB_job_number", ""), ElementTree.tostring(row, "unicode")
        start = find_failed_start(details)
        if start is not None:
            found[number] = start
        elif reason := parse_error_reason(details):
            found[number] = FailedStart("", reason)
    return found


@cache
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
    """Return the root of a command's output; ValueError for incomplete or other XML.

    Args:
        xml: The output.
        root_name: Name of the root; empty for any.
    """
    # Grid Engine 8.1.9 writes "%lt;" instead of "&lt;", control characters in variables of jobs,
    # and after a restart of the master the element "JATASK:       1.".
    text = _NOT_XML.sub("?", _TASK_TAG.sub(r"<\1JATASK>", xml.replace("%lt;", "&lt;")))
    try:
        root = ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    if root_name and root.tag != root_name:
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


def _gpus(requests: Iterable[ElementTree.Element]) -> float:
    """Return the number of requested GPUs, or the share of one."""
    wanted = {field.get("name"): field.text for field in requests}
    return int(float(wanted.get("gpu") or 0)) or float(wanted.get("gpu_share") or 0)


@lru_cache(maxsize=10_000)
def _seconds(stamp: str) -> float:
    if not stamp:
        return 0.0
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
