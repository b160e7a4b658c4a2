"""What a node that the balancer adds will offer to jobs; no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from starcluster.aws.model import InstanceType
from starcluster.balance.cell.model import Cell, NewNode, Place, Value
from starcluster.balance.cell.requests import number
from starcluster.balance.observation.read import Reading

_SHARE_OF_MEMORY = 0.95
"""Part of an instance type's memory that jobs can use at most; Linux keeps the rest."""
_WHEN_IDLE = {"mem_free": "mem_total", "swap_free": "swap_total", "virtual_free": "virtual_total"}
_ARCHITECTURES = {"x86_64": "lx-amd64", "arm64": "lx-arm64"}


class NewNodes:
    """Predicts new nodes, and remembers what idle nodes of each instance type reported.

    Without this memory, a job that asks for slightly more than a node has would add a node, wait
    while the node is removed as idle, and add it once more.
    """

    def __init__(self) -> None:
        self._reported: dict[str, dict[str, Value]] = {}

    def predict(self, facts: InstanceType, hosts: Collection[str], reading: Reading) -> NewNode:
        """Return a node like an idle one of its type, else a busy one, else from the facts.

        Args:
            hosts: Current hosts of that instance type.
        """
        by_host: dict[str, list[Place]] = {}
        for place in reading.cell.places:
            if place.host in hosts:
                by_host.setdefault(place.host, []).append(place)
        idle = [places for places in by_host.values() if _is_idle(places)]
        known = self._reported.get(facts.name, {})
        if idle:
            best = [_emptied(place, reading.totals) for place in max(idle, key=_memory)]
            known = self._reported[facts.name] = _of_host(best)
        elif by_host:
            busy = max(by_host.values(), key=_memory)
            best = [_emptied(_rested(each), reading.totals) for each in busy]
            given = reading.totals.get(busy[0].host, {})
            known = {name: value for name, value in known.items() if name not in given}
        else:
            best = _expected(facts, reading.cell)
        places = [replace(place, values={**place.values, **known}) for place in best]
        return NewNode(kind=facts.name, places=tuple(places))


def _is_idle(places: Iterable[Place]) -> bool:
    return all(place.idle and place.usable for place in places)


def _memory(places: Iterable[Place]) -> float:
    return max(number(place.values.get("mem_free", Value("0")).text) for place in places)


def _of_host(places: Iterable[Place]) -> dict[str, Value]:
    return {
        name: value
        for place in places
        for name, value in place.values.items()
        if value.level == "h"
    }


def _rested(place: Place) -> Place:
    """Return a busy place with the loads of an idle one."""
    values = dict(place.values)
    for name, value in place.values.items():
        if (total := values.get(_WHEN_IDLE.get(name, ""))) is not None:
            values[name] = replace(value, text=total.text)
        elif "load_" in name or name in ("cpu", "mem_used", "swap_used", "virtual_used"):
            values[name] = replace(value, text="0")
    return replace(place, values=values)


def _emptied(place: Place, totals: Mapping[str, Mapping[str, str]]) -> Place:
    """Return a place with all its consumables, and without its name."""
    values = dict(place.values)
    of_queue = totals.get(f"{place.queue}@{place.host}", {})
    for level, given in (("q", of_queue), ("h", totals.get(place.host, {}))):
        for name, text in given.items():
            lower = level == "h" and name in of_queue and number(of_queue[name]) <= number(text)
            if not lower:
                values[name] = Value(text, level)
    return replace(place, host="", usable=True, idle=True, values=values)


def _expected(facts: InstanceType, cell: Cell) -> list[Place]:
    """Return the places of a node of an instance type that the cell does not have.

    Its queues, and their limits, are those of the current hosts.
    """
    memory = f"{facts.memory_mib * _SHARE_OF_MEMORY:.0f}M"
    own = {
        "arch": _ARCHITECTURES.get(facts.architecture, facts.architecture),
        "num_proc": str(facts.vcpus),
        "gpu": str(facts.gpus if "NVIDIA" in facts.gpu_name.upper() else 0),
        **dict.fromkeys(("mem_total", "mem_free", "virtual_total", "virtual_free"), memory),
        **dict.fromkeys(("swap_total", "swap_free", "mem_used", "load_avg", "np_load_avg"), "0"),
    }
    values = {name: Value(text, "h") for name, text in own.items()}
    values["slots"] = Value(str(facts.vcpus))
    first = Place(queue="all.q", host="", values={}, environments=frozenset(cell.environments))
    queues = {place.queue: place for place in cell.places} or {first.queue: first}
    return [
        replace(
            place,
            host="",
            usable=True,
            idle=True,
            values={n: v for n, v in place.values.items() if v.level != "h"} | values,
        )
        for place in queues.values()
    ]
