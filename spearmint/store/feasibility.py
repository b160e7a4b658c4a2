"""Whether a search has points that meet its linear constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spearmint.config.linear import unmet
from spearmint.errors import ConfigError
from spearmint.model import Experiment
from spearmint.store.distributions import guessed_points, tree_of


def require_feasible(experiment: Experiment) -> None:
    """Check that points meet all linear constraints, also with the guesses and the seed points.

    Raises:
        ConfigError: None does; the message names the constraints that exclude each other.
    """
    tree = tree_of(experiment.variables, experiment.linear)
    if tree is None or not tree.linear:
        return
    from spearmint.feasible import conflict  # imports scipy

    if rows := conflict(tree.space(tree.searched)):
        texts = list(dict.fromkeys(repr(row.text) for row in rows))
        what = f"no point meets require {' and '.join(texts)}"
        raise ConfigError(experiment.path, what, "Relax one, or change the bounds of a variable.")
    for point in guessed_points(experiment.variables):
        if problem := point_problem(experiment, point):
            raise ConfigError(experiment.path, f"the guesses: {problem}", "Change a guess.")


def point_problem(experiment: Experiment, point: Mapping[str, Any]) -> str:
    """Return why a point violates a linear constraint; empty if it meets all.

    Args:
        experiment: The search.
        point: Values by element name. Others must have values with which the point meets all.
    """
    shown = " ".join(f"{name}={value}" for name, value in point.items())
    if wrong := unmet(experiment.linear, experiment.variables, point):
        return f"{shown} violates require {wrong.text!r}"
    tree = tree_of(experiment.variables, experiment.linear)
    if tree is None or not tree.linear:
        return ""
    from spearmint.choosers.inside import is_completable  # imports numpy

    some = (each for each in experiment.linear if not set(point).isdisjoint(each.names))
    if all(set(each.names) <= set(point) for each in some) or is_completable(tree, point):
        return ""
    return f"with {shown}, no values of the other variables meet require"
