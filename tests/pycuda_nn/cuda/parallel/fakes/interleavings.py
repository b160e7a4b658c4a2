"""Run the actions of a model in random orders: see protocol.cc."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.pycuda_nn.cuda.parallel.fakes.protocol import Key, Model, Version

FAULTS = ("", "deadlock", "not there yet", "read while written", "overwritten", "flag shrinks")
_FIELDS = "rank layer missing next n_next put wait value reads n_reads writes n_writes"


class _Action(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in _FIELDS.split())


class _Found(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("fault", "action", "cell")),
        ("seed", ctypes.c_uint),
    )


class Interleavings:
    """The model in random orders."""

    def __init__(self, folder: Path) -> None:
        made = folder / "protocol.so"
        source = Path(__file__).parent / "protocol.cc"
        flags = ["-std=c++17", "-O2", "-shared", "-fPIC", "-w"]
        subprocess.run(["g++", *flags, "-o", str(made), str(source)], check=True)
        self._library = ctypes.CDLL(str(made))
        self._library.interleave.restype = _Found

    def fault(self, model: Model, runs: int, first: int = 0) -> str:
        """Return the first fault in ``runs`` random orders, or nothing."""
        cells: dict[Key, int] = {}
        flags: dict[Key, int] = {}
        lists: list[int] = []

        def listed(values: Iterable[int]) -> tuple[int, int]:
            at = len(lists)
            lists.extend(values)
            return at, len(lists) - at

        def pairs(of: list[Version]) -> tuple[int, int]:
            some = [(cells.setdefault(key, len(cells)), version) for key, version in of]
            at, n = listed(itertools.chain(*some))
            return at, n // 2

        numbers = {action: i for i, action in enumerate(model.actions)}
        followers: list[list[int]] = [[] for _ in model.actions]
        for action in model.actions:
            for before in action.after:
                followers[numbers[before]].append(numbers[action])
        given = (_Action * len(model.actions))()
        for i, (action, to) in enumerate(zip(model.actions, given, strict=True)):
            to.rank, to.layer, to.missing = action.rank, action.layer, len(action.after)
            to.next, to.n_next = listed(followers[i])
            to.reads, to.n_reads = pairs(action.reads)
            to.writes, to.n_writes = pairs(action.writes)
            for name in ("put", "wait"):
                key = getattr(action, name)
                setattr(to, name, -1 if key is None else flags.setdefault(key, len(flags)))
            to.value = action.value
        words = (ctypes.c_int * len(lists))(*lists)
        found = self._library.interleave(
            given,
            words,
            len(given),
            model.size,
            model.last + 1,
            len(cells),
            len(flags),
            first,
            runs,
        )
        if not found.fault:
            return ""
        what = FAULTS[found.fault]
        if found.action < 0:
            return f"seed {found.seed}: {what}"
        action = model.actions[found.action]
        names = list(flags if what == "flag shrinks" else cells)
        return (
            f"seed {found.seed}: {what}: {action.name} of rank {action.rank}: {names[found.cell]}"
        )
