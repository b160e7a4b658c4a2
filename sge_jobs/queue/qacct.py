"""Parse the output of ``qacct -j``."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sge_jobs.model import AccountingRecord

_RULE = re.compile(r"^={20,}$", re.MULTILINE)
_UNITS = {"": 1.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4}
_SIZE = re.compile(r"(-?[\d.]+)([KMGT]?)B?")
_STAMPS = (  # Grid Engine 8.1.9, Univa Grid Engine, Open Cluster Scheduler
    "%a %b %d %H:%M:%S %Y",
    "%m/%d/%Y %H:%M:%S.%f",
    "%m/%d/%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%d %H:%M:%S",
)


def parse_accounting(text: str) -> list[AccountingRecord]:
    """Return a record for each run in the output of ``qacct -j``, whose times must be UTC."""
    blocks = [_fields(block) for block in _RULE.split(text)]
    return [_record(fields) for fields in blocks if "jobnumber" in fields]


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(" ") for line in block.splitlines() if line and not line[0].isspace())
    return {name: value.strip() for name, _, value in pairs}


def _record(fields: dict[str, str]) -> AccountingRecord:
    code, _, words = fields.get("failed", "0").partition(":")
    task = fields.get("taskid", "undefined")
    return AccountingRecord(
        id=fields["jobnumber"],
        task="" if task == "undefined" else task,
        name=fields.get("jobname", ""),
        owner=fields.get("owner", ""),
        host=fields.get("hostname", ""),
        failed=_int(code),
        failed_text=words.strip(),
        exit_status=_int(fields.get("exit_status", "0")),
        submitted=_seconds(fields.get("qsub_time", "")),
        started=_seconds(fields.get("start_time", "")),
        ended=_seconds(fields.get("end_time", "")),
        wallclock_s=_size(fields.get("ru_wallclock", "0").rstrip("s")),
        memory_bytes=_size(fields.get("maxvmem", "0")),
    )


def _int(text: str) -> int:
    number = re.match(r"\s*(-?\d+)", text)
    return int(number[1]) if number else 0


def _size(text: str) -> float:
    size = _SIZE.match(text)
    return float(size[1]) * _UNITS[size[2]] if size else 0.0


def _seconds(stamp: str) -> float | None:
    for form in _STAMPS:
        try:
            when = datetime.strptime(stamp, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
        return when or None  # 1970 if the job was moved before it started
    return None
