"""Choosers: what to try next. Each is an Optuna sampler, ours and Optuna's own, found by name.

A chooser keeps nothing between calls but its seed: the same history, seed and trial number give
the same proposal, in another process too.
"""

from __future__ import annotations

from spearmint.choosers.gp_ei_opt import GPEIOptChooser
from spearmint.choosers.random_chooser import RandomChooser
from spearmint.choosers.registry import CHOOSERS, chooser_names, make_chooser, parse_method_args
from spearmint.choosers.sequential import SequentialChooser

__all__ = [
    "CHOOSERS",
    "GPEIOptChooser",
    "RandomChooser",
    "SequentialChooser",
    "chooser_names",
    "make_chooser",
    "parse_method_args",
]
