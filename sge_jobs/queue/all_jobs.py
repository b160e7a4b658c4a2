"""List jobs if a file of default options of qstat hides some of them.

The options of ``.sge_qstat`` in the home directory and of ``sge_qstat`` of the cell cannot be
switched off. ``qstat -j`` ignores their filters, but shows no states; ``qhost -j`` reads no such
file and shows the states of running jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

from sge_jobs.model import JobStatus, QueuedJob
from sge_jobs.queue.commands import Commands
from sge_jobs.queue.default_files import default_files
from sge_jobs.queue.qstat import job_status, read_xml

_ARRAY = 128  # in JB_type
# Options that choose jobs or print something else, and that a command line cannot neutralise.
_HIDING = re.compile(r"(?m)(?:^|\s)-(?:q|pe|l|U|g|qs|j|help|dj|dq)(?=\s|$)")


def hiding_files(environment: Mapping[str, str]) -> list[Path]:
    """Return the files of default options with which qstat does not list every job."""
    files = default_files(environment, "sge_qstat")
    return [path for path, text in files.items() if _HIDING.search(text)]


def all_jobs(commands: Commands) -> list[QueuedJob]:
    """Return the jobs of all users; a held job counts as pending.

    Raises:
        ValueError: A command printed something else.
    """
    # In this order: a job that starts in between is listed as running.
    answer = commands.run("qstat", "-xml", "-j", "*")
    if answer.status and not answer.out.strip():
        raise ValueError(answer.words or "no output")
    described = read_xml(answer.out, "")
    placed = read_xml(commands.ask("qhost", "-xml", "-j"), "qhost")
    running = _running(placed)
    rows = described.iterfind("djob_info/element")
    return [job for row in rows for job in _jobs(row, running)]


def _running(root: Element) -> dict[tuple[str, str], dict[str, str]]:
    """Return the values of each running task by job and task; those of its first host."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in root.iter("job"):
        values = {value.get("name", ""): (value.text or "") for value in row.iter("jobvalue")}
        key = (row.get("name", ""), values.get("taskid", ""))
        if values.get("pe_master") != "SLAVE" or key not in found:
            found[key] = values
    return found


def _jobs(
    row: Element, running: Mapping[tuple[str, str], Mapping[str, str]]
) -> Iterator[QueuedJob]:
    id = row.findtext("JB_job_number", "")
    is_array = int(row.findtext("JB_type") or 0) & _ARRAY
    tasks = {task: values for (job, task), values in running.items() if job == id}
    total = sum(_range(part) for part in row.iterfind("JB_ja_structure/task_id_range"))
    for task, values in tasks.items():
        queue, _, host = values.get("qinstance_name", "").partition("@")
        state = values.get("job_state", "r")
        since = float(values.get("start_time") or 0)
        yield _job(row, task=task, state=state, queue=queue, host=host, since=since)
    if len(tasks) < max(total, 1):
        in_error = row.find("JB_ja_tasks/ulong_sublist/JAT_message_list") is not None and not tasks
        since = float(row.findtext("JB_submission_time") or 0)
        text = _task_text(row) if is_array else ""
        yield _job(row, task=text, state="Eqw" if in_error else "qw", since=since)


def _job(
    row: Element, *, task: str, state: str, since: float, queue: str = "", host: str = ""
) -> QueuedJob:
    slots = row.findtext("JB_pe_range/ranges/RN_min")
    status = JobStatus.ERROR if state == "Eqw" else job_status(state)
    return QueuedJob(
        id=row.findtext("JB_job_number", ""),
        task=task,
        name=row.findtext("JB_job_name", ""),
        owner=row.findtext("JB_owner", ""),
        state=state,
        status=status,
        queue=queue,
        host=host,
        slots=int(slots or 1),
        since=since,
        gpus=_gpus(row),
    )


def _gpus(row: Element) -> int:
    requests = row.iterfind("JB_hard_resource_list/qstat_l_requests")
    wanted = [request.findtext("CE_doubleval") for request in requests if _is_gpu(request)]
    return int(max((float(text or 0) for text in wanted), default=0))


def _is_gpu(request: Element) -> bool:
    return request.findtext("CE_name") == "gpu"


def _range(part: Element) -> int:
    low, high, step = (int(part.findtext(name) or 1) for name in ("RN_min", "RN_max", "RN_step"))
    return (high - low) // max(step, 1) + 1


def _task_text(row: Element) -> str:
    part = row.find("JB_ja_structure/task_id_range")
    names = ("RN_min", "RN_max", "RN_step")
    low, high, step = ("1" if part is None else part.findtext(name, "1") for name in names)
    return f"{low}-{high}:{step}"
