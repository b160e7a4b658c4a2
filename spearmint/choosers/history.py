"""The trials of a study as arrays for a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from spearmint.choosers.encoding import dimension, to_float
from spearmint.choosers.lines import fitted_line
from spearmint.choosers.rungs import RungValues, rungs_of
from spearmint.choosers.selection import selected_trials, signs_of
from spearmint.gp.space import Space

if TYPE_CHECKING:
    from optuna.study import Study

    from spearmint.choosers.tree import Tree
    from spearmint.gp.numerics import Array
    from spearmint.transfer.ensemble import Ensemble

ABANDONED = "abandoned"
"""Attribute of a trial that never got all its parameters."""

DISREGARDED = "spearmint:disregarded"
"""Attribute of a study: numbers of trials that failed because of a bug; choosers ignore them."""
INFEASIBLE = "infeasible"

_Ended: TypeAlias = "tuple[list[float], FrozenTrial]"  # its row of coordinates
_Observed: TypeAlias = "tuple[list[float], list[float], FrozenTrial]"  # row and losses


@dataclass(frozen=True, kw_only=True)
class History:
    """Observed and pending points of one study, as a minimisation problem.

    Attributes:
        space: One dimension for each searched parameter, in the order of the search space.
        points: Coordinates of the observed points, shape ``(n, D)``.
        losses: Finite values of all K objectives, negated if they are maximised, shape ``(n, K)``.
        pending: Coordinates of the running trials, shape ``(p, D)``.
        infeasible: Coordinates of the infeasible trials without a value; empty unless ``history``
            was called with ``constrained`` or ``limits``.
        trials: The trials of ``points``, in the same order.
        unvalued: The trials of ``infeasible``, in the same order.
        guesses: The user's guesses, by dimension: their coordinate and spread.
        ensemble: The models of earlier searches; None if there are none.
        references: Worst losses of use, NaN where not given, shape ``(K,)``; empty without any.
        unused: Coordinates of the trials that ended before any had a finite value.
    """

    space: Space
    points: Array
    losses: Array
    pending: Array
    infeasible: Array
    trials: tuple[FrozenTrial, ...]
    unvalued: tuple[FrozenTrial, ...] = ()
    guesses: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    ensemble: Ensemble | None = None
    references: Sequence[float] = ()
    unused: Sequence[Array] = ()

    @property
    def y(self) -> Array:
        """Finite values of the first objective, negated if it is maximised, shape ``(n,)``."""
        return np.asarray(self.losses[:, 0])

    @property
    def tried(self) -> Array:
        """Coordinates of all finished trials, infeasible trials last."""
        return np.concatenate((self.points, self.infeasible))


def with_pending(past: History, point: Array) -> History:
    """Return ``past`` with one more running trial, at ``point`` (D,)."""
    return replace(past, pending=np.concatenate((past.pending, point[None])))


def trials_of(study: Study, number: int) -> list[FrozenTrial]:
    """Return the trials of ``study`` that have parameters, in order, without trial ``number``.

    For a bracket of ``HyperbandPruner``, return the trials of the whole study: the final values of
    pruned trials are estimated anyway, and points of other brackets do not have to be repeated.
    """
    study = getattr(study, "_study", study)
    return _usable(study.get_trials(deepcopy=False), _left_out(study, number))


def some_trials_of(study: Study, number: int, rng: np.random.Generator) -> list[FrozenTrial] | None:
    """Return those of ``trials_of`` that are used of many trials; None for all of them."""
    study = getattr(study, "_study", study)
    left_out = _left_out(study, number)
    some = selected_trials(study, left_out, rng)
    return None if some is None else _usable(some, left_out)


def _left_out(study: Study, number: int) -> set[int]:
    return {number, *study.user_attrs.get(DISREGARDED, ())}


def _usable(trials: Iterable[FrozenTrial], left_out: set[int]) -> list[FrozenTrial]:
    """Return the trials that have parameters and are not to be left out."""
    used = [t for t in trials if t.distributions and t.number not in left_out]
    return [t for t in used if not t.user_attrs.get(ABANDONED)]


def common_space(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return the parameters that all complete trials have, with the distributions of the latest.

    Parameters with a single value are omitted. Pruned, failed (broken) and running trials can lack
    parameters, so they are used only if no trial is complete: of the trials with the most
    parameters, the latest one then gives the parameters.
    """
    finished = [t for t in trials if t.state == TrialState.COMPLETE]
    if finished:
        names = set.intersection(*(set(t.distributions) for t in finished))
        latest = finished[-1].distributions
    elif trials:
        latest = max(trials, key=lambda t: (len(t.distributions), t.number)).distributions
        names = set(latest)
    else:
        return {}
    # Sorted, because a database can return parameters in another order than they were asked for.
    return {name: latest[name] for name in sorted(names) if not latest[name].single()}


def history(
    study: Study,
    trials: Sequence[FrozenTrial],
    search_space: dict[str, BaseDistribution],
    *,
    constrained: bool = False,
    limits: bool = False,
    tree: Tree | None = None,
) -> History:
    """Return ``trials`` as points of ``search_space``; omit trials outside of it.

    A failed (broken) trial with all parameters gets the worst finite value of the study, so that
    the chooser avoids its point. An infinite value of either sign is replaced in the same way. A
    pruned trial gets the estimate of its final value (:class:`Finals`), which is infinite if it
    diverged or reported nothing. If trials pause at rungs, each has the estimate of its value at
    the same rung (:class:`spearmint.choosers.rungs.RungValues`). With ``constrained``, trials that
    failed, are infinite or were declared infeasible have no value; they are in ``infeasible``. A
    trial that violates a measured constraint counts as the worst, too; with ``limits`` it has its
    value. With a ``tree``, a trial does not have to have the parameters that are inactive at its
    point.
    """
    signs = signs_of(study)
    space = (
        Space(tuple(dimension(d) for d in search_space.values()))
        if tree is None
        else tree.space(search_space)
    )
    rows = [(row, t) for t in trials if (row := _row(t, search_space, tree)) is not None]
    pending = [row for row, trial in rows if _is_pending(trial)]
    ended = [(row, trial) for row, trial in rows if not _is_pending(trial)]
    observed, infeasible = _observed(
        ended,
        Finals(trials),
        RungValues(trials, signs[0]),
        signs,
        constrained=constrained,
        limits=limits,
    )
    if limits and not any(np.isfinite(losses).all() for _, losses, _ in observed):
        # Their constraints are known.
        observed += [(row, [0.0] * len(signs), trial) for row, trial in infeasible]
        infeasible = []
    ended_rows = [row for row, _, _ in observed]
    observed, losses = _finite(observed, len(signs))

    def coordinates(rows: Iterable[list[float]]) -> Array:
        values = np.array(list(rows)).reshape(-1, len(space))
        found = space.coordinates(values)
        return found if tree is None else np.where(np.isnan(values), space.centre, found)

    return History(
        space=space,
        points=coordinates(row for row, _, _ in observed),
        losses=losses,
        pending=coordinates(pending),
        infeasible=coordinates(row for row, _ in infeasible),
        trials=tuple(trial for _, _, trial in observed),
        unvalued=tuple(trial for _, trial in infeasible),
        unused=() if observed else tuple(coordinates(ended_rows)),
    )


def _finite(observed: list[_Observed], objectives: int) -> tuple[list[_Observed], Array]:
    """Return the trials and their losses (n, K), the infinite ones replaced by the worst or best.

    There are no trials if no loss is finite.
    """
    losses = np.array([losses for _, losses, _ in observed]).reshape(-1, objectives)
    finite = losses[np.isfinite(losses).all(axis=1)]
    if not len(finite):
        return [], finite
    return observed, np.clip(losses, finite.min(axis=0), finite.max(axis=0))


def _observed(
    ended: Iterable[_Ended],
    finals: Finals,
    rungs: RungValues,
    signs: Sequence[float],
    *,
    constrained: bool,
    limits: bool,
) -> tuple[list[_Observed], list[_Ended]]:
    """Return the trials with losses, which can be infinite, and those that have no value."""
    infeasible: list[_Ended] = []
    observed: list[_Observed] = []
    for row, trial in ended:
        at_rung = rungs.of(trial)
        values = _values(trial, finals, len(signs)) if at_rung is None else [at_rung]
        if values is None:
            continue
        has_value = bool(np.isfinite(values).all())
        unknown = not has_value or _declared_infeasible(trial)
        if (constrained and unknown) or (limits and trial.constraints and not has_value):
            infeasible.append((row, trial))
        else:
            counts = has_value and (limits or _keeps_limits(trial))
            pairs = zip(signs, values, strict=True)
            losses = [sign * value if counts else np.inf for sign, value in pairs]
            observed.append((row, losses, trial))
    return observed, infeasible


def _is_pending(trial: FrozenTrial) -> bool:
    """Return whether a trial runs and has no value yet, not even at a rung."""
    return trial.state == TrialState.RUNNING and rungs_of(trial) is None


def _declared_infeasible(trial: FrozenTrial) -> bool:
    """Return whether ``trial`` is marked infeasible or has an Optuna constraint above 0."""
    return bool(trial.user_attrs.get(INFEASIBLE)) or not _keeps_limits(trial)


def _keeps_limits(trial: FrozenTrial) -> bool:
    return all(gap <= 0.0 for gap in trial.constraints.values())


def _row(
    trial: FrozenTrial, search_space: dict[str, BaseDistribution], tree: Tree | None
) -> list[float] | None:
    """Return the native values of ``trial``, NaN if inactive; None if one is missing or invalid."""
    row = []
    for name, distribution in search_space.items():
        if tree is not None and not tree.is_active(name, trial.params):
            row.append(np.nan)
            continue
        if name not in trial.params:
            return None
        value = to_float(distribution, trial.params[name])
        if value is None:
            return None
        row.append(value)
    return row


def _values(trial: FrozenTrial, finals: Finals, count: int) -> list[float] | None:
    """Return the values of ``trial``, infinite if it failed; None if it has none."""
    if trial.state == TrialState.COMPLETE:
        return list(trial.values)
    if trial.state == TrialState.FAIL:
        return [np.inf] * count
    if trial.state == TrialState.PRUNED:
        return [finals.of(trial) if count == 1 else np.inf] * count
    return None


DIVERGED = "diverged"
"""Attribute of a trial: step of its last report that was not finite. That value is not stored."""


class Finals:
    """Estimates final values of pruned trials by a line fitted to the complete trials at each step.

    See :func:`spearmint.choosers.lines.fitted_line`.
    """

    def __init__(self, trials: Sequence[FrozenTrial]) -> None:
        self._finished = [
            (trial.intermediate_values, trial.value)
            for trial in trials
            if trial.state == TrialState.COMPLETE
            and trial.intermediate_values
            and trial.value is not None
            and np.isfinite(trial.value)
        ]
        self._lines: dict[int, tuple[float, float]] = {}

    def of(self, trial: FrozenTrial) -> float:
        """Return the estimate for a pruned trial; infinity if it diverged or reported nothing.

        If fewer than 3 complete trials reported its last step, the estimate is its last report.
        """
        step = max(trial.intermediate_values, default=-1)
        if step < 0 or trial.user_attrs.get(DIVERGED, -1) > step:
            return np.inf
        last = trial.intermediate_values[step]
        if not np.isfinite(last):
            return np.inf
        if step not in self._lines:
            self._lines[step] = self._line(step)
        start, slope = self._lines[step]
        return float(start + slope * last)

    def _line(self, step: int) -> tuple[float, float]:
        return fitted_line(
            [(at[step], value) for at, value in self._finished if np.isfinite(at.get(step, np.nan))]
        )
