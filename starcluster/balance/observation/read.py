"""Read a cell from the output of Grid Engine's commands on the master; no I/O."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from starcluster.balance.cell.model import (
    Attribute,
    Cell,
    Environment,
    Job,
    JobState,
    Place,
    Value,
)

_UNUSABLE = set("aAcCdDEosSu")
_HEADING = "== "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the commands printed.

    Attributes:
        totals: Consumables of each host, by its name, and of each queue instance, by
            ``queue@host``, while no job runs.
        running_jobs: Number of running jobs.
        busy: Hosts with jobs.
    """

    jobs: tuple[Job, ...]
    cell: Cell
    totals: Mapping[str, Mapping[str, str]]
    running_jobs: int
    busy: frozenset[str]


def command(hosts: Iterable[str]) -> str:
    """Return the command line whose output :func:`read` takes.

    Args:
        hosts: Hosts whose consumables are printed, if they are in the cell.
    """
    names = shlex.join(hosts)
    # UTC, because the master may be in another time zone than this machine.
    return f"""export TZ=UTC LC_ALL=C SGE_SINGLE_LINE=1
qstat -u '*' -f -r -F -xml || exit 1
echo '== jobs'; qstat -j '*' 2>/dev/null | grep -E \
'^(job_number|maximum concurrency|execution_time):|exceeds limit|user limitations'
echo '== attributes'; qconf -sc
echo '== queues'; qconf -sq '*@*' | grep -E '^(qname|hostname|pe_list|slots|complex_values) '
echo '== environments'; for name in $(qconf -spl 2>/dev/null); do qconf -sp "$name"; done
echo '== hosts'; for name in {names or "''"}; do qconf -se "$name" 2>/dev/null; done
true"""


def read(text: str, now: datetime) -> Reading:
    """Return jobs and places. ``now`` is in UTC, without a time zone."""
    sections = _sections(text)
    xml = sections[""]
    root = ET.fromstring(  # noqa: S314 - of our own master
        xml[xml.index("<?xml") :].replace("%lt;", "&lt;")
    )
    # A parallel job is listed on each of its hosts.
    tasks = {
        (row.findtext("JB_job_number"), row.findtext("tasks"))
        for row in root.iterfind(".//Queue-List/job_list")
    }
    running = Counter(number for number, _ in tasks)
    queues = {
        f"{row['qname']}@{row['hostname']}": row for row in _records(sections["queues"], "qname")
    }
    hosts = {row["hostname"]: row for row in _records(sections["hosts"], "hostname")}
    places = tuple(_place(row, queues) for row in root.iter("Queue-List"))
    cell = Cell(
        places=places,
        attributes=_attributes(sections["attributes"]),
        environments=_environments(sections["environments"], root),
    )
    details = _details(sections["jobs"])
    rows = root.findall("job_info/job_list")
    return Reading(
        jobs=tuple(_job(row, details, running, now) for row in rows),
        cell=cell,
        totals={name: _consumables(row) for name, row in (hosts | queues).items()},
        running_jobs=running.total(),
        busy=frozenset(place.host for place in places if not place.idle),
    )


def _sections(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {"": []}
    lines = found[""]
    for line in text.splitlines():
        if line.startswith(_HEADING):
            lines = found.setdefault(line.removeprefix(_HEADING), [])
        else:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _records(text: str, first: str) -> list[dict[str, str]]:
    """Return blocks of lines ``NAME VALUE``, each of which starts with the name ``first``."""
    records: list[dict[str, str]] = []
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == first:
            records.append({})
        if records:
            records[-1][name] = value.strip()
    return records


def _consumables(row: Mapping[str, str]) -> dict[str, str]:
    parts = row.get("complex_values", "").replace(",", " ").split()
    given = dict(part.split("=", 1) for part in parts if "=" in part)
    return {"slots": row["slots"], **given} if "slots" in row else given


def _place(row: ET.Element, queues: Mapping[str, Mapping[str, str]]) -> Place:
    name = row.findtext("name") or ""
    queue, _, host = name.partition("@")
    values = {
        each.get("name", ""): Value(each.text or "", (each.get("type") or "q")[0])
        for each in row.findall("resource")
    }
    used = int(row.findtext("slots_used") or 0)
    free = max(int(row.findtext("slots_total") or 0) - used, 0)
    values.setdefault("slots", Value(str(free)))
    environments = queues.get(name, {}).get("pe_list", "NONE").replace(",", " ").split()
    return Place(
        queue=queue,
        host=host,
        values=values,
        environments=frozenset(environments) - {"NONE"},
        usable=not set(row.findtext("state") or "") & _UNUSABLE,
        idle=not used and row.find("job_list") is None,
    )


def _attributes(text: str) -> dict[str, Attribute]:
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {
        row[0]: Attribute(kind=row[2], relation=row[3], consumable=row[5])
        for row in rows
        if len(row) >= 6
    }


def _environments(text: str, root: ET.Element) -> dict[str, Environment]:
    used = Counter[str]()
    for row in root.iterfind(".//Queue-List/job_list"):
        if (granted := row.find("granted_pe")) is not None:
            used[granted.get("name", "")] += int(row.findtext("slots") or 0)
    return {
        row["pe_name"]: Environment(
            rule=row.get("allocation_rule", "$pe_slots"),
            free=int(row.get("slots", 0)) - used[row["pe_name"]],
        )
        for row in _records(text, "pe_name")
    }


def _details(text: str) -> dict[str, dict[str, str]]:
    """Return ``most`` (tasks at once), ``from`` (a time) and ``limit`` (a quota) of jobs."""
    found: dict[str, dict[str, str]] = {}
    number = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "job_number":
            number = value.strip()
            found[number] = {}
        elif name == "maximum concurrency":
            found[number]["most"] = value.strip()
        elif name == "execution_time":
            found[number]["from"] = value.strip()
        elif (quota := re.search(r'limit "([^"]*)" in rule "([^"]*)"', line)) is None:
            found[number]["limit"] = "the scheduler's maximum of running jobs per user"
        elif not quota[1].split("/")[4:5] or not quota[1].split("/")[4]:  # not of a host
            found[number]["limit"] = f"resource quota {quota[2]}"
    return found


def _job(
    row: ET.Element,
    details: Mapping[str, Mapping[str, str]],
    running: Mapping[str | None, int],
    now: datetime,
) -> Job:
    id = row.findtext("JB_job_number") or ""
    detail = details.get(id, {})
    state = row.findtext("state") or ""
    since = row.findtext("JB_submission_time") or ""
    environment = row.find("requested_pe")
    pe = environment.get("name", "") if environment is not None else ""
    slots = environment.text if environment is not None else row.findtext("slots")
    requests = {each.get("name", ""): each.text or "" for each in row.findall("hard_request")}
    most = int(detail.get("most", 0))
    return Job(
        id=id,
        state=_state(state),
        waited_s=(now - datetime.fromisoformat(since)).total_seconds() if since else 0.0,
        tasks=_tasks(row.findtext("tasks") or ""),
        startable=max(most - running.get(id, 0), 0) if most else None,
        pe=pe,
        slots=min(map(int, re.findall(r"\d+", slots or "")), default=1),
        requests=requests,
        queues=tuple(each.text or "" for each in row.findall("hard_req_queue")),
        blocked=_blocked(detail, now),
    )


def _state(letters: str) -> JobState:
    if "E" in letters:
        return JobState.ERROR
    return JobState.HELD if "h" in letters or "q" not in letters else JobState.WAITING


def _blocked(detail: Mapping[str, str], now: datetime) -> str:
    if start := detail.get("from", ""):
        at = datetime.strptime(start, "%a %b %d %H:%M:%S %Y")
        if at > now:
            return f"it starts at {at:%Y-%m-%d %H:%M} UTC"
    return f"it reaches {detail['limit']}" if "limit" in detail else ""


def _tasks(text: str) -> int:
    """Return the number of tasks in ``1-41:1`` or ``3,5``; 1 for a job without tasks."""
    count = 0
    for part in filter(None, text.split(",")):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        count += (int(last or first) - int(first)) // int(step or 1) + 1
    return count or 1
