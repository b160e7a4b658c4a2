"""Query with qconf how the cell counts GPUs, and how many it configures for this host."""

from __future__ import annotations

import os
import re

from sge_jobs.node.queries import QueryFailed, ask, find_program


def consumable_kind() -> str:
    """Return how the cell counts ``gpu``: YES, JOB or NO; empty if qconf fails."""
    try:
        text = ask([find_program("qconf", os.environ), "-sc"], os.environ, 10.0)
    except QueryFailed:
        return ""
    return parse_consumable_kind(text)


def parse_consumable_kind(qconf: str) -> str:
    """Return the column ``consumable`` of ``gpu`` in ``qconf -sc``: YES, JOB or NO; else empty."""
    for line in qconf.split("\n"):
        columns = line.split()
        if len(columns) >= 6 and columns[0] == "gpu":
            return columns[5].upper()
    return ""


def given_gpus(host: str) -> int:
    """Return how many GPUs the cell configures for ``host``; 0 if qconf fails."""
    try:
        text = ask([find_program("qconf", os.environ), "-se", host], os.environ, 10.0)
    except QueryFailed:
        return 0
    return parse_given(text)


def parse_given(qconf: str) -> int:
    """Return N of ``gpu=N``, or of ``gpu=N(IDS)``, in the text of ``qconf -se``; else 0."""
    for line in qconf.replace("\\\n", " ").splitlines():
        name, _, value = line.partition(" ")
        if name == "complex_values":
            given = re.search(r"(?:^|[\s,])gpu=(\d+)", value)
            return int(given[1]) if given else 0
    return 0
