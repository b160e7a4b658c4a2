"""Choosers: what to try next. Each is an Optuna sampler, ours and Optuna's own, found by name.

A chooser keeps nothing between calls but its seed: the same history, seed and trial number give
the same proposal, in another process too.
"""

from __future__ import annotations

from spearmint.choosers.cma import CMAChooser
from spearmint.choosers.gp_constrained_ei import GPConstrainedEIChooser
from spearmint.choosers.gp_ei import GPEIChooser, GPEIOptChooser
from spearmint.choosers.gp_ei_per_sec import GPEIperSecChooser
from spearmint.choosers.random_forest import RandomForestEIChooser
from spearmint.choosers.registry import CHOOSERS, chooser_names, make_chooser, parse_method_args
from spearmint.choosers.space_filling import RandomChooser, SequentialChooser

__all__ = [
    "CHOOSERS",
    "CMAChooser",
    "GPConstrainedEIChooser",
    "GPEIChooser",
    "GPEIOptChooser",
    "GPEIperSecChooser",
    "RandomChooser",
    "RandomForestEIChooser",
    "SequentialChooser",
    "chooser_names",
    "make_chooser",
    "parse_method_args",
]
