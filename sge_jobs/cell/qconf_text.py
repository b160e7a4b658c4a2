"""Parse and format the configuration of a cell in the text format of qconf."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Attributes = Mapping[str, str]
_CONTINUED = re.compile(r"\\\n\s*")
_GPUS = re.compile(r"(?:^|[,\s])gpu=([^,\s(]+)")
_HOST_VALUE = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellConfig:
    """The current configuration of a cell.

    Attributes:
        complexes: Text of ``qconf -sc``.
        callers: Administrative and submit hosts, which can query the master.
        hosts: Attributes of each execution host.
        queues: Attributes of each requested cluster queue.
        parallel_environments: Attributes of each parallel environment.
        scheduler: Attributes of ``qconf -ssconf``.
        configuration: Attributes of ``qconf -sconf global``.
        host_groups: Attributes of the host groups, if they were read.
        local: Attributes of ``qconf -sconf HOST``, for each host with a local configuration.
    """

    complexes: str = ""
    callers: tuple[str, ...] = ()
    hosts: Mapping[str, Attributes] = field(default_factory=dict)
    queues: Mapping[str, Attributes] = field(default_factory=dict)
    parallel_environments: Mapping[str, Attributes] = field(default_factory=dict)
    scheduler: Attributes = field(default_factory=dict)
    configuration: Attributes = field(default_factory=dict)
    host_groups: Mapping[str, Attributes] = field(default_factory=dict)
    local: Mapping[str, Attributes] = field(default_factory=dict)


def parse_attributes(text: str) -> dict[str, str]:
    """Return the attributes in the output of ``qconf -s...``, in order, continued lines joined."""
    lines = _CONTINUED.sub("", text).splitlines()
    pairs = (line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs}


def parse_queues(text: str) -> dict[str, Attributes]:
    """Return the attributes of each queue in the output of ``qconf -sq '*'``."""
    parts = re.split(r"(?m)^(?=qname\s)", text)
    queues = [parse_attributes(part) for part in parts if part.strip()]
    return {queue["qname"]: queue for queue in queues if "qname" in queue}


def format_attributes(attributes: Attributes) -> str:
    """Return the file that ``qconf -M...`` reads."""
    return "".join(f"{name} {value}\n" for name, value in attributes.items())


def complex_rows(text: str) -> dict[str, list[str]]:
    """Return the columns of each complex (resource), by its name and by its shortcut."""
    rows = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    return {name: row for row in rows if len(row) >= 2 for name in (row[1], row[0])}


def list_items(value: str) -> list[str]:
    """Return the items of a list such as ``gpu=2,license=1``; none for NONE."""
    items = re.split(r"[,\s]+", value.strip())
    return [item for item in items if item and item.lower() != "none"]


def list_values(value: str) -> dict[str, str]:
    """Return ``name=value`` items by name."""
    return {name: text for name, _, text in (item.partition("=") for item in list_items(value))}


def gpus_given(complex_values: str) -> str | None:
    """Return N of ``gpu=N``, or of ``gpu=N(0 1 2)`` of a resource map (RSMAP); else None."""
    given = _GPUS.search(complex_values)
    return given[1] if given else None


def cluster_default(value: str) -> str:
    """Return the value of a queue without those of single hosts: ``NONE,[node1=x]`` gives NONE."""
    return _HOST_VALUE.sub("", value).strip(", ")
