"""Plan what ``sge-jobs setup`` changes in a cell, without side effects.

Only missing values and defaults of Grid Engine's packages are changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from sge_jobs.cell.changes import Change, ChangePlan, configured, setting_lines
from sge_jobs.cell.desired import (
    FAULT_COMPLEX,
    FAULT_COMPLEX_KEPT,
    GPU_COMPLEX,
    LOAD_REPORTS,
    LOST_HOSTS,
    PARALLEL_ENVIRONMENT,
    PARAMETERS,
    QUEUE,
    SCHEDULER,
    SHARE_COMPLEX,
    STATE_COMPLEX,
    STATE_COMPLEX_CLOSED,
    DesiredCell,
)
from sge_jobs.cell.qconf_text import (
    Attributes,
    CellConfig,
    complex_rows,
    format_attributes,
    gpus_given,
    list_items,
    list_values,
)
from sge_jobs.gpu_state import SHARE_SLACK


def plan_setup(cell: CellConfig, desired: DesiredCell, *, waited: bool = False) -> ChangePlan:
    """Return the changes with which the queue of ``cell`` gives each job its own GPUs.

    Args:
        waited: Whether the hosts had time to apply earlier changes; if so, nothing is for later.
    """
    left: list[str] = []
    steps: tuple[Callable[[CellConfig, DesiredCell, list[str]], Iterator[Change]], ...] = (
        _callers,
        _complexes,
        _gpu_counts,
        _parallel_environment,
        _queue,
        _scheduler,
    )
    changes = [change for step in steps for change in step(cell, desired, left)]
    new = _configuration(cell, desired, left)
    timeouts = _lost_host_timeouts(cell, left)
    later: list[Change] = []
    if timeouts and not waited and not hosts_are_configured(cell):
        later.append(configured({**cell.configuration, **new, **timeouts}, timeouts))
    else:
        new |= timeouts
    if new:
        changes.append(configured({**cell.configuration, **new}, new))
    return ChangePlan(
        changes=tuple(changes),
        later=tuple(later),
        wait_s=2 * _seconds(cell.configuration.get("load_report_time", "0")) + 10 if later else 0,
        left=tuple(left),
    )


def _callers(cell: CellConfig, desired: DesiredCell, left: list[str]) -> Iterator[Change]:
    """Yield the changes that let each host query the master, as starter and sensor do."""
    for host in cell.hosts:
        if host not in (*cell.callers, "global", "template"):
            yield Change(arguments=("-as", host))


def _complexes(cell: CellConfig, desired: DesiredCell, left: list[str]) -> Iterator[Change]:
    rows = complex_rows(cell.complexes)
    new: list[str] = []
    fault, state = [FAULT_COMPLEX, FAULT_COMPLEX_KEPT], [STATE_COMPLEX, STATE_COMPLEX_CLOSED]
    if desired.keeps_hosts:
        fault.reverse()
    if desired.restricts_devices is None:
        closes = STATE_COMPLEX_CLOSED.split() in rows.values()
    else:
        closes = desired.restricts_devices
    if closes:
        state.reverse()
    lines = cell.complexes.rstrip("\n").split("\n")
    kept = [line for line in lines if line.split() not in (fault[1].split(), state[1].split())]
    for line in set(lines) - set(kept):
        del rows[line.split()[0]]
    for line in (GPU_COMPLEX, SHARE_COMPLEX, state[0], fault[0]):
        name = line.split()[0]
        if name not in rows:
            new.append(line)
        elif (found := " ".join(rows[name])) != line:
            left.append(f"complex {name}: {found} (recommended: {line})")
    if new:
        text = "\n".join([*kept, *new, ""])
        yield Change(arguments=("-Mc", "FILE"), text=text, lines=tuple(new))


def _gpu_counts(cell: CellConfig, desired: DesiredCell, left: list[str]) -> Iterator[Change]:
    for host, attributes in cell.hosts.items():
        if host == "global" or host == "template":
            continue
        found = gpus_given(attributes.get("complex_values", ""))
        wished = desired.gpus_everywhere
        if wished is None:
            wished = desired.sensed.get(host)
        count = desired.gpus.get(host, wished if found is None else None)
        total = found if count is None else str(count)
        new = {} if total is None or found == total else {"gpu": total}
        if total is not None:
            new |= _shares(attributes.get("complex_values", ""), found, total)
        if new:
            values = ",".join(f"{name}={value}" for name, value in new.items())
            yield Change(arguments=("-mattr", "exechost", "complex_values", values, host))
        if count is None and wished is not None and found != str(wished):
            left.append(f"host {host}: gpu={found} (change it with --gpus {host}={wished})")


def _shares(complex_values: str, gpus_before: str | None, gpus: str) -> dict[str, str]:
    """Return the new ``gpu_share`` of a host: as many as GPUs, unless the site chose a number."""
    if f"gpu={gpus_before}(" in complex_values:
        return {}  # Grid Engine 9 chooses the GPUs of its jobs
    before = list_values(complex_values).get("gpu_share")
    is_ours = before is None or (gpus_before is not None and before == shares_given(gpus_before))
    new = shares_given(gpus)
    return {"gpu_share": new} if is_ours and new not in ("", before) else {}


def shares_given(gpus: str) -> str:
    """Return the ``gpu_share`` of a host with this number of GPUs; empty for other text."""
    if not gpus.isdigit():
        return ""
    return f"{int(gpus) + SHARE_SLACK:g}" if int(gpus) else "0"


def _parallel_environment(
    cell: CellConfig, desired: DesiredCell, left: list[str]
) -> Iterator[Change]:
    found = cell.parallel_environments.get("smp")
    if found is None:
        text = format_attributes(PARALLEL_ENVIRONMENT)
        lines = ("pe_name smp", "allocation_rule $pe_slots")
        yield Change(arguments=("-Ap", "FILE"), text=text, lines=lines)
    elif (rule := found.get("allocation_rule")) != "$pe_slots":
        left.append(f"parallel environment smp: allocation_rule {rule} (recommended: $pe_slots)")
    if "smp" not in _words(cell.queues[desired.queue].get("pe_list", "")):
        yield Change(arguments=("-aattr", "queue", "pe_list", "smp", desired.queue))


def _queue(cell: CellConfig, desired: DesiredCell, left: list[str]) -> Iterator[Change]:
    queue = cell.queues[desired.queue]
    starter = queue.get("starter_method", "NONE")
    ours = str(desired.starter)
    if starter.upper() == "NONE" or _is_older(starter, desired.starter):
        yield Change(arguments=("-rattr", "queue", "starter_method", ours, desired.queue))
    elif starter != ours:
        left.append(
            f"queue {desired.queue}: starter_method {starter}; it does not assign GPUs to jobs"
            f' unless its last line is: exec {ours} "$@"'
        )
    for name, (default, value) in QUEUE.items():
        found = queue.get(name, "")
        if found == default:
            yield Change(arguments=("-rattr", "queue", name, value, desired.queue))
        elif found != value:
            left.append(f"queue {desired.queue}: {name} {found} (recommended: {value})")


def _is_older(found: str, ours: PurePosixPath) -> bool:
    """Whether ``found`` is the same program in another installation of this package."""
    return found != str(ours) and PurePosixPath(found).parts[-3:] == ours.parts[-3:]


def _scheduler(cell: CellConfig, desired: DesiredCell, left: list[str]) -> Iterator[Change]:
    new = dict(_defaults_replaced("scheduler", cell.scheduler, SCHEDULER, left))
    if new:
        text = format_attributes({**cell.scheduler, **new})
        yield Change(arguments=("-Msconf", "FILE"), text=text, lines=setting_lines(new))


def _configuration(cell: CellConfig, desired: DesiredCell, left: list[str]) -> dict[str, str]:
    found = cell.configuration
    new = dict(_defaults_replaced("configuration", found, LOAD_REPORTS, left))
    for name, (parameter, value) in PARAMETERS.items():
        given = list_values(found.get(name, ""))
        if parameter not in given:
            items = [*list_items(found.get(name, "")), f"{parameter}={value}"]
            new[name] = " ".join(items)
        elif given[parameter] != value:
            left.append(
                f"configuration: {name} {parameter}={given[parameter]} (recommended: {value})"
            )
    sensors = [item.strip() for item in found.get("load_sensor", "none").split(",")]
    others = [
        item for item in sensors if item.lower() != "none" and not _is_older(item, desired.sensor)
    ]
    if str(desired.sensor) not in others:
        new["load_sensor"] = ",".join([*others, str(desired.sensor)])
    for host, local in cell.local.items():
        own = local.get("load_sensor")
        if own is not None and str(desired.sensor) not in own:
            left.append(
                f"configuration of host {host}: load_sensor {own} overrides {desired.sensor}"
            )
    return new


def _lost_host_timeouts(cell: CellConfig, left: list[str]) -> dict[str, str]:
    """Return the timeouts of lost hosts; none if hosts report less often than setup expects."""
    name, (default, value) = next(iter(LOAD_REPORTS.items()))
    usual = (_seconds(default), _seconds(value))
    everywhere = {"global": cell.configuration, **cell.local}
    seldom = [
        f"{host}: {attributes[name]}"
        for host, attributes in everywhere.items()
        if name in attributes and _seconds(attributes[name]) not in usual
    ]
    if seldom:
        left.append(f"configuration: max_unheard, because {name} is set for {', '.join(seldom)}")
        return {}
    return dict(_defaults_replaced("configuration", cell.configuration, LOST_HOSTS, left))


def hosts_are_configured(cell: CellConfig) -> bool:
    """Whether each host that is up reports often enough and has the GPU sensor."""
    name, (_, value) = next(iter(LOAD_REPORTS.items()))
    reports = [list_values(host.get("load_values", "")) for host in cell.hosts.values()]
    soon = _seconds(cell.configuration.get(name, "")) == _seconds(value)
    return all(soon and "gpu_state" in values for values in reports if values)


def _defaults_replaced(
    where: str, found: Attributes, settings: Mapping[str, tuple[str, str]], left: list[str]
) -> Iterator[tuple[str, str]]:
    for name, (default, value) in settings.items():
        given = found.get(name, default)
        if given == default or _seconds(given) == _seconds(default):
            yield name, value
        elif given != value and _seconds(given) != _seconds(value):
            left.append(f"{where}: {name} {given} (recommended: {value})")


def _seconds(text: str) -> float:
    """Return the seconds of ``0:0:15`` or ``15``; NaN, which equals nothing, for any other text."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + (int(part) if part.isdigit() else math.nan)
    return seconds


def _words(value: str) -> list[str]:
    return list_items(value.replace("[", " ").replace("]", " ").replace("=", " "))
