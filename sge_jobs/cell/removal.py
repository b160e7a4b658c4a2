"""Plan what ``sge-jobs setup --undo`` removes from a cell, without side effects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from sge_jobs.cell.changes import Change, ChangePlan, configured
from sge_jobs.cell.qconf_text import CellConfig, complex_rows

_PROGRAMS = (("sge_jobs", "node", "gpu-starter"), ("sge_jobs", "node", "gpu-sensor"))


def plan_removal(cell: CellConfig) -> ChangePlan:
    """Return the changes that remove this package's programs from ``cell``, and what remains."""
    left = [
        f"queue {name}: starter_method {starter}"
        for name, starter in _queue_starters(cell)
        if starter.upper() != "NONE" and not _is_ours(starter)
    ]
    left += [
        f"configuration of host {host}: load_sensor {own['load_sensor']}"
        for host, own in cell.local.items()
        if any(map(_is_ours, _sensors(own.get("load_sensor", ""))))
    ]
    rows = complex_rows(cell.complexes)
    kinds = ("gpu", "gpu_share", "gpu_state", "gpu_fault")
    left += [f"complex {name}" for name in kinds if name in rows]
    left.append(
        "number of GPUs of the hosts, submit hosts, smp, rerun, load_thresholds, timings and limits"
    )
    return ChangePlan(changes=(*_starters(cell), *_sensor(cell)), left=tuple(left))


def _starters(cell: CellConfig) -> Iterator[Change]:
    for name, starter in _queue_starters(cell):
        if _is_ours(starter):
            yield Change(arguments=("-rattr", "queue", "starter_method", "NONE", name))


def _queue_starters(cell: CellConfig) -> Iterator[tuple[str, str]]:
    for name, attributes in cell.queues.items():
        yield name, attributes.get("starter_method", "NONE")


def _sensor(cell: CellConfig) -> Iterator[Change]:
    sensors = _sensors(cell.configuration.get("load_sensor", ""))
    others = [path for path in sensors if not _is_ours(path)]
    if others != sensors:
        new = {"load_sensor": ",".join(others) or "none"}
        yield configured({**cell.configuration, **new}, new)


def _sensors(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _is_ours(program: str) -> bool:
    """Whether ``program`` belongs to this package or to another installation of it."""
    return "[" not in program and PurePosixPath(program).parts[-3:] in _PROGRAMS
