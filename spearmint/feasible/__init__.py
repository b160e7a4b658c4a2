"""Points that meet the linear constraints of a space: find, draw, spread, and repair them."""

from __future__ import annotations

from spearmint.feasible.branches import Branch, branches
from spearmint.feasible.draws import draws, within
from spearmint.feasible.program import Program
from spearmint.feasible.pull import pull, rounded
from spearmint.feasible.slide import slide
from spearmint.feasible.starts import conflict, nearest, starts
from spearmint.feasible.sweep import sweep

__all__ = [
    "Branch",
    "Program",
    "branches",
    "conflict",
    "draws",
    "nearest",
    "pull",
    "rounded",
    "slide",
    "starts",
    "sweep",
    "within",
]
