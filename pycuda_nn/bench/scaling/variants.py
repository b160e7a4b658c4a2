"""The ways in which torch trains; the fastest of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def variants_of(gpus: int, *, quick: bool, half: bool) -> list[dict[str, Any]]:
    """Return the ways to train that are timed; ``half``: also with gradients in bfloat16.

    ``graph`` replays the whole step as one CUDA graph, ``hook`` exchanges gradients in bfloat16,
    and ``cap`` is the size of a bucket of gradients in MiB. One GPU exchanges nothing.
    """
    if gpus == 1:
        return [{"graph": graph, "hook": False, "cap": None} for graph in (False, True)]
    found: list[dict[str, Any]] = []
    for graph in (False, True):
        caps: Sequence[int] = (4, 25) if quick and not graph else (1, 4, 25)
        hooks = ((True,) if quick else (False, True)) if half else (False,)
        found += [{"graph": graph, "hook": hook, "cap": cap} for hook in hooks for cap in caps]
    return found
