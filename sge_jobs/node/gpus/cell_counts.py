"""Query with qconf how the cell counts GPUs, and how many it configures for this host."""

from __future__ import annotations

import os
import re

from sge_jobs.node.queries import QueryFailed, ask, find_program


class GpuComplex:
    """How the cell counts ``gpu``.

    Attributes:
        kind: Type, such as INT or RSMAP; empty if unknown.
        consumable: YES, JOB or NO; empty if unknown.
    """

    __slots__ = ("consumable", "kind")

    def __init__(self, kind: str = "", consumable: str = "") -> None:
        self.kind = kind
        self.consumable = consumable

    @property
    def per_slot(self) -> bool:
        """Whether a request counts for each slot."""
        return self.consumable == "YES"

    @property
    def chosen(self) -> bool:
        """Whether Grid Engine chooses the GPUs of a job."""
        return self.kind == "RSMAP"


def complexes() -> str:
    """Return the output of ``qconf -sc``; empty if it fails."""
    try:
        return ask([find_program("qconf", os.environ), "-sc"], os.environ, 10.0)
    except QueryFailed:
        return ""


def shortcut_of(qconf: str, name: str) -> str:
    """Return the shortcut of complex ``name`` in the output of ``qconf -sc``; else empty."""
    rows = (line.split() for line in qconf.split("\n"))
    return next((row[1] for row in rows if len(row) > 1 and row[0] == name), "")


def parse_gpu_complex(qconf: str) -> GpuComplex:
    """Return the row of ``gpu`` in ``qconf -sc``; unknown without one."""
    for line in qconf.split("\n"):
        columns = line.split()
        if len(columns) >= 6 and columns[0] == "gpu":
            return GpuComplex(columns[2].upper(), columns[5].upper())
    return GpuComplex()


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
