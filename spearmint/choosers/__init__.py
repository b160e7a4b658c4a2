"""Choosers, which propose the next point, and pruners, which stop trials early; found by name.

A chooser is an Optuna sampler with no state between calls except its seed: the same history, seed
and trial number give the same proposal, also in another process. To write a chooser, subclass
:class:`Chooser` and test it with :class:`spearmint.choosers.testing.ChooserContract`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.choosers.arguments import parse_method_args
from spearmint.choosers.pruners import make_pruner, pruner_names
from spearmint.choosers.registry import CHOOSERS, chooser_class, chooser_names, make_chooser
from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.choosers.base import Chooser
    from spearmint.choosers.cma import CMAChooser
    from spearmint.choosers.gp_constrained_ei import GPConstrainedEIChooser
    from spearmint.choosers.gp_ei import GPEIChooser, GPEIOptChooser
    from spearmint.choosers.gp_ei_per_sec import GPEIperSecChooser
    from spearmint.choosers.model_chooser import ModelChooser
    from spearmint.choosers.random_forest import RandomForestEIChooser
    from spearmint.choosers.space_filling import RandomChooser, SequentialChooser

__all__ = [
    "CHOOSERS",
    "CMAChooser",
    "Chooser",
    "GPConstrainedEIChooser",
    "GPEIChooser",
    "GPEIOptChooser",
    "GPEIperSecChooser",
    "ModelChooser",
    "RandomChooser",
    "RandomForestEIChooser",
    "SequentialChooser",
    "chooser_class",
    "chooser_names",
    "make_chooser",
    "make_pruner",
    "parse_method_args",
    "pruner_names",
]

# Names and arguments load fast; a class imports Optuna and numpy.
__getattr__ = lazy_names(
    __name__,
    {
        "Chooser": "spearmint.choosers.base",
        "ModelChooser": "spearmint.choosers.model_chooser",
        **{name: path.partition(":")[0] for name, path in CHOOSERS.items()},
    },
)
