"""How many threads numpy's OpenBLAS uses for a while.

Two threads gain little on a small matrix product, and where other processes want the same cores
they wait for each other: 64-row steps of the digits network then took 10 to 100 times as long as
with one thread. Several trials of a search on one machine are just that case.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")
_Pair = tuple[Callable[[], int], Callable[[int], None]]


@contextlib.contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Let BLAS use at most ``threads`` inside; never more than outside.

    Does nothing where numpy does not bring its own OpenBLAS.
    """
    pair = _openblas()
    if pair is None:
        yield
        return
    get, put = pair
    before = get()
    put(min(before, threads))
    try:
        yield
    finally:
        put(before)


@functools.cache
def _openblas() -> _Pair | None:
    """Return (get, set) of the OpenBLAS in numpy's wheel, already loaded by numpy itself."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in _NAMES:
            get = getattr(library, name.format("get"), None)
            put = getattr(library, name.format("set"), None)
            if get is not None and put is not None:
                get.restype, get.argtypes = ctypes.c_int, []
                put.restype, put.argtypes = None, [ctypes.c_int]
                return get, put
    return None
