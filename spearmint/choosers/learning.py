"""Earlier searches in the terms of a chooser: its variables, and the model that it fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler

from spearmint.choosers.encoding import from_float
from spearmint.transfer.match import Task, Variables, matched
from spearmint.transfer.seeds import seed_points

if TYPE_CHECKING:
    from spearmint.acquisition.next_point import Model
    from spearmint.choosers.history import History
    from spearmint.gp.space import Space
    from spearmint.transfer.earlier import EarlierSearch
    from spearmint.transfer.ensemble import EarlierModel, Ensemble

_FEWEST, _MOST = 3, 32
_MOST_MODELS = 64  # in memory, of about a MiB each


def variables_of(names: Mapping[str, BaseDistribution], space: Space) -> Variables:
    """Return the variables of ``space``, whose dimensions are ``names`` in this order."""
    return Variables(tuple(names), space, tuple(_choices(d) for d in names.values()))


def _choices(distribution: BaseDistribution) -> tuple[str, ...]:
    if isinstance(distribution, CategoricalDistribution):
        return tuple(map(str, distribution.choices))
    return ()


def ensemble_of(
    earlier: Iterable[EarlierSearch], names: Mapping[str, BaseDistribution], space: Space
) -> Ensemble | None:
    """Return the models of the earlier searches; None if none of them can be used.

    Each is fitted once in a process, also for several regions.
    """
    from spearmint.transfer.ensemble import Ensemble

    variables = variables_of(names, space)
    models = [model for each in earlier if (model := _fitted(each, variables)) is not None]
    return Ensemble(models) if models else None


@lru_cache(maxsize=_MOST_MODELS)
def _fitted(earlier: EarlierSearch, variables: Variables) -> EarlierModel | None:
    from spearmint.transfer.ensemble import EarlierModel

    task = matched(earlier, variables)
    return EarlierModel(variables.space, task) if task.is_usable else None


def first_points(
    tasks: Sequence[Task], names: Mapping[str, BaseDistribution], space: Space, size: int
) -> list[dict[str, Any]]:
    """Return at most ``size`` of the best points of earlier searches, by element name.

    A point has the variables that its search has.
    """
    order = list(names.items())
    points = []
    for task, at in seed_points(space, tasks, size):
        values = space.values(at)
        shared = [(order[d], values[d]) for d in task.shared]
        points.append({name: from_float(found, value) for (name, found), value in shared})
    return points


def n_initial_of(sampler: BaseSampler, n_dimensions: int) -> int:
    """Return the number of trials before ``sampler`` has a model; for Optuna's an estimate."""
    from spearmint.choosers.model_chooser import ModelChooser

    if isinstance(sampler, ModelChooser):
        return sampler.n_initial(n_dimensions)
    return min(max(_FEWEST, n_dimensions + 1), _MOST)


def model_of(past: History) -> Model | None:
    """Return what fits the model of the objective; None for the model without earlier searches."""
    return past.ensemble.fit if past.ensemble is not None else None
