"""What ``sge-jobs setup`` changes in a cell; pure.

Only a value that is missing, or is still the one that Grid Engine's packages bring, is changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from sge_jobs.cell.qconf_text import (
    Attributes,
    CellConfig,
    complex_rows,
    format_attributes,
    gpus_given,
    list_items,
    list_values,
)

GPU_COMPLEX = "gpu gpu INT <= YES JOB 0 0"
STATE_COMPLEX = "gpu_state gpu_state STRING == YES NO NONE 0"
PARALLEL_ENVIRONMENT = {
    "pe_name": "smp",
    "slots": "9999",
    "user_lists": "NONE",
    "xuser_lists": "NONE",
    "start_proc_args": "NONE",
    "stop_proc_args": "NONE",
    "allocation_rule": "$pe_slots",
    "control_slaves": "FALSE",
    "job_is_first_task": "TRUE",
    "urgency_slots": "min",
    "accounting_summary": "FALSE",
    "qsort_args": "NONE",
}
# name: (what the packages bring, what we set)
SCHEDULER = {
    "schedule_interval": ("0:0:15", "0:0:1"),
    "flush_submit_sec": ("0", "1"),
    "flush_finish_sec": ("0", "1"),
}
REPORTS = {"load_report_time": ("00:00:40", "00:00:05")}
# A host that is silent for max_unheard counts as lost, and reschedule_unknown later its jobs run
# again elsewhere. The first, lowered before every host reports as often, takes away the jobs of
# hosts that are well. So does the second if it is short: when the master starts again, hosts that
# are well were silent for up to 32 s.
LOST = {
    "max_unheard": ("00:05:00", "00:00:20"),
    "reschedule_unknown": ("00:00:00", "00:01:00"),
}
# A job that ends is in qacct at once, and with it end the processes that left its group; users can
# delete a job whose host is lost.
PARAMETERS = {
    "qmaster_params": ("ENABLE_FORCED_QDEL_IF_UNKNOWN", "true"),
    "reporting_params": ("accounting_flush_time", "00:00:00"),
    "execd_params": ("ENABLE_ADDGRP_KILL", "true"),
}
CONFIGURED = (*REPORTS, *LOST, *PARAMETERS, "load_sensor")
"""Names of the global configuration that may be changed."""
QUEUE = {
    "rerun": ("FALSE", "TRUE"),
    "load_thresholds": ("np_load_avg=1.75", "NONE"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the cell should have.

    Attributes:
        queue: Cluster queue whose jobs get GPUs.
        starter, sensor: Programs of this package, as every host sees them.
        gpus: GPUs of each host that was named; changed also where the site set another number.
        gpus_everywhere: GPUs of every host that has no number yet; None to leave those.
        sensed: GPUs that a host's sensor reports, for those that have no number yet.
    """

    queue: str
    starter: PurePosixPath
    sensor: PurePosixPath
    gpus: Mapping[str, int] = field(default_factory=dict)
    gpus_everywhere: int | None = None
    sensed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One call of qconf.

    Attributes:
        arguments: Of qconf; ``FILE`` stands for a file with ``text``.
        text: What that file holds.
        file_name: Its name, where qconf reads a meaning into it.
        lines: The lines of ``text`` that are new, for people.
    """

    arguments: tuple[str, ...]
    text: str = ""
    file_name: str = "FILE"
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        call = " ".join(["qconf", *self.arguments]).replace("FILE", self.file_name)
        return "\n".join([call, *(f"    {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Changes, and what was found otherwise and left alone.

    Attributes:
        later: Changes for when every host has taken the first ones.
        wait_s: Seconds that this takes at most.
    """

    changes: tuple[Change, ...] = ()
    later: tuple[Change, ...] = ()
    wait_s: float = 0.0
    left: tuple[str, ...] = ()


def plan(cell: CellConfig, wanted: Wanted, *, waited: bool = False) -> Plan:
    """Return what turns ``cell`` into one whose queue gives each job GPUs of its own.

    Args:
        waited: The hosts had their time: nothing is for later.
    """
    left: list[str] = []
    steps: tuple[Callable[[CellConfig, Wanted, list[str]], Iterator[Change]], ...] = (
        _callers,
        _complexes,
        _gpu_counts,
        _parallel_environment,
        _queue,
        _scheduler,
    )
    changes = [change for step in steps for change in step(cell, wanted, left)]
    new = _configuration(cell, wanted, left)
    patience = _patience(cell, left)
    later: list[Change] = []
    if patience and not waited and not have_taken(cell):
        later.append(configured({**cell.configuration, **new, **patience}, patience))
    else:
        new |= patience
    if new:
        changes.append(configured({**cell.configuration, **new}, new))
    return Plan(
        changes=tuple(changes),
        later=tuple(later),
        wait_s=2 * _seconds(cell.configuration.get("load_report_time", "0")) + 10 if later else 0,
        left=tuple(left),
    )


def _callers(cell: CellConfig, wanted: Wanted, left: list[str]) -> Iterator[Change]:
    """Let hosts ask the master: the starter of every job does, and the sensor."""
    for host in cell.hosts:
        if host not in (*cell.callers, "global", "template"):
            yield Change(arguments=("-as", host))


def _complexes(cell: CellConfig, wanted: Wanted, left: list[str]) -> Iterator[Change]:
    rows = complex_rows(cell.complexes)
    new: list[str] = []
    for line in (GPU_COMPLEX, STATE_COMPLEX):
        name = line.split()[0]
        if name not in rows:
            new.append(line)
        elif (found := " ".join(rows[name])) != line:
            left.append(f"complex {name}: {found} (here: {line})")
    if new:
        text = "\n".join([cell.complexes.rstrip("\n"), *new, ""])
        yield Change(arguments=("-Mc", "FILE"), text=text, lines=tuple(new))


def _gpu_counts(cell: CellConfig, wanted: Wanted, left: list[str]) -> Iterator[Change]:
    for host, attributes in cell.hosts.items():
        if host == "global" or host == "template":
            continue
        found = gpus_given(attributes.get("complex_values", ""))
        wished = wanted.gpus_everywhere
        if wished is None:
            wished = wanted.sensed.get(host)
        count = wanted.gpus.get(host, wished if found is None else None)
        if count is not None and found != str(count):
            yield Change(arguments=("-mattr", "exechost", "complex_values", f"gpu={count}", host))
        elif count is None and wished is not None and found != str(wished):
            left.append(f"host {host}: gpu={found} (change it by --gpus {host}={wished})")


def _parallel_environment(cell: CellConfig, wanted: Wanted, left: list[str]) -> Iterator[Change]:
    found = cell.parallel_environments.get("smp")
    if found is None:
        text = format_attributes(PARALLEL_ENVIRONMENT)
        lines = ("pe_name smp", "allocation_rule $pe_slots")
        yield Change(arguments=("-Ap", "FILE"), text=text, lines=lines)
    elif (rule := found.get("allocation_rule")) != "$pe_slots":
        left.append(f"parallel environment smp: allocation_rule {rule} (here: $pe_slots)")
    if "smp" not in _words(cell.queues[wanted.queue].get("pe_list", "")):
        yield Change(arguments=("-aattr", "queue", "pe_list", "smp", wanted.queue))


def _queue(cell: CellConfig, wanted: Wanted, left: list[str]) -> Iterator[Change]:
    queue = cell.queues[wanted.queue]
    starter = queue.get("starter_method", "NONE")
    ours = str(wanted.starter)
    if starter.upper() == "NONE" or _is_older(starter, wanted.starter):
        yield Change(arguments=("-rattr", "queue", "starter_method", ours, wanted.queue))
    elif starter != ours:
        left.append(
            f"queue {wanted.queue}: starter_method {starter}; its jobs get no GPU of their own"
            f' unless it ends in: exec {ours} "$@"'
        )
    for name, (default, value) in QUEUE.items():
        found = queue.get(name, "")
        if found == default:
            yield Change(arguments=("-rattr", "queue", name, value, wanted.queue))
        elif found != value:
            left.append(f"queue {wanted.queue}: {name} {found} (here: {value})")


def _is_older(found: str, ours: PurePosixPath) -> bool:
    """Whether ``found`` is this package's starter of an earlier installation."""
    return found != str(ours) and PurePosixPath(found).parts[-3:] == ours.parts[-3:]


def _scheduler(cell: CellConfig, wanted: Wanted, left: list[str]) -> Iterator[Change]:
    new = dict(_defaults_replaced("scheduler", cell.scheduler, SCHEDULER, left))
    if new:
        text = format_attributes({**cell.scheduler, **new})
        yield Change(arguments=("-Msconf", "FILE"), text=text, lines=_lines(new))


def _configuration(cell: CellConfig, wanted: Wanted, left: list[str]) -> dict[str, str]:
    found = cell.configuration
    new = dict(_defaults_replaced("configuration", found, REPORTS, left))
    for name, (parameter, value) in PARAMETERS.items():
        given = list_values(found.get(name, ""))
        if parameter not in given:
            items = [*list_items(found.get(name, "")), f"{parameter}={value}"]
            new[name] = " ".join(items)
        elif given[parameter] != value:
            left.append(f"configuration: {name} {parameter}={given[parameter]}")
    sensors = [item.strip() for item in found.get("load_sensor", "none").split(",")]
    others = [
        item for item in sensors if item.lower() != "none" and not _is_older(item, wanted.sensor)
    ]
    if str(wanted.sensor) not in others:
        new["load_sensor"] = ",".join([*others, str(wanted.sensor)])
    for host, local in cell.local.items():
        own = local.get("load_sensor")
        if own is not None and str(wanted.sensor) not in own:
            left.append(f"configuration of host {host}: its own load_sensor {own} hides ours")
    return new


def configured(attributes: Attributes, new: Attributes) -> Change:
    """Return the change of the global configuration to ``attributes``, of which ``new`` is new."""
    text = format_attributes(attributes)
    return Change(arguments=("-Mconf", "FILE"), text=text, file_name="global", lines=_lines(new))


def _patience(cell: CellConfig, left: list[str]) -> dict[str, str]:
    """Return when a host counts as lost; nothing where hosts report too seldom for that."""
    name, (default, value) = next(iter(REPORTS.items()))
    usual = (_seconds(default), _seconds(value))
    everywhere = {"global": cell.configuration, **cell.local}
    seldom = [
        f"{host}: {attributes[name]}"
        for host, attributes in everywhere.items()
        if name in attributes and _seconds(attributes[name]) not in usual
    ]
    if seldom:
        left.append(f"configuration: max_unheard, for {name} is set for {', '.join(seldom)}")
        return {}
    return dict(_defaults_replaced("configuration", cell.configuration, LOST, left))


def have_taken(cell: CellConfig) -> bool:
    """Whether each host that is up reports as often as we want, and through our sensor."""
    name, (_, value) = next(iter(REPORTS.items()))
    reports = [list_values(each.get("load_values", "")) for each in cell.hosts.values()]
    soon = _seconds(cell.configuration.get(name, "")) == _seconds(value)
    return all(soon and "gpu_state" in values for values in reports if values)


def _defaults_replaced(
    where: str, found: Attributes, wanted: Mapping[str, tuple[str, str]], left: list[str]
) -> Iterator[tuple[str, str]]:
    for name, (default, value) in wanted.items():
        given = found.get(name, default)
        if given == default or _seconds(given) == _seconds(default):
            yield name, value
        elif given != value and _seconds(given) != _seconds(value):
            left.append(f"{where}: {name} {given} (here: {value})")


def _seconds(text: str) -> float:
    """Return the seconds of ``0:0:15`` or ``15``; NaN, which equals nothing, of another text."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + (int(part) if part.isdigit() else math.nan)
    return seconds


def _words(value: str) -> list[str]:
    return list_items(value.replace("[", " ").replace("]", " ").replace("=", " "))


def _lines(new: Attributes) -> tuple[str, ...]:
    return tuple(f"{name} {value}" for name, value in new.items())
