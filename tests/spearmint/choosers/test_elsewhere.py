"""A search that has converged looks elsewhere; any other proposes as without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers import GPEIOptChooser
from spearmint.choosers.base import placeholder
from spearmint.choosers.elsewhere import Model, basins, points_with_restarts
from spearmint.choosers.elsewhere.basins import is_in_basin
from spearmint.choosers.elsewhere.convergence import has_settled
from spearmint.choosers.elsewhere.restarts import Restarts
from spearmint.choosers.history import History, history, trials_of
from spearmint.choosers.rungs import RUNGS
from spearmint.gp.predict import predict
from spearmint.gp.space import Dimension, Space
from spearmint.transfer import Ensemble

SPACE: dict[str, BaseDistribution] = {name: FloatDistribution(0.0, 1.0) for name in ("a", "b")}
_AFTER = 14
Params = dict[str, Any]


def bowl(params: Params) -> float:
    """Return a bowl around (0.3, 0.35), with a narrow well that a search seldom finds."""
    a, b = params["a"], params["b"]
    well = math.exp(-((a - 0.85) ** 2 + (b - 0.8) ** 2) / 0.01)
    return float((a - 0.3) ** 2 + (b - 0.35) ** 2 - 0.6 * well)


@dataclass
class Search:
    """Trials of a search, and the notices by the number of the trial that was asked for."""

    trials: list[FrozenTrial]
    notices: dict[int, list[str]]

    @property
    def start(self) -> int:
        """The number of the first trial of the first restart."""
        return min(self.notices)

    def study(self, n: int, change: Callable[[FrozenTrial], Any] | None = None) -> optuna.Study:
        """Return a study of the first ``n`` trials, with a new chooser."""
        study = optuna.create_study(sampler=GPEIOptChooser(seed=0))
        study.add_trials([(change and change(t)) or t for t in self.trials[:n]])
        return study

    def past(self, n: int) -> History:
        study = self.study(n)
        return history(study, trials_of(study, n), dict(SPACE))


def searched(most: int, function: Callable[[Params], float] = bowl, **arguments: Any) -> Search:
    chooser = GPEIOptChooser(seed=0, **arguments)
    study = optuna.create_study(sampler=chooser)
    notices: dict[int, list[str]] = {}
    for number in range(most):
        if notices and number >= min(notices) + _AFTER:
            break
        trial = study.ask(SPACE)
        study.tell(trial, function(trial.params))
        if texts := chooser.notices():
            notices[number] = texts
    return Search(study.trials, notices)


@pytest.fixture(scope="module")
def search() -> Search:
    found = searched(80)
    assert found.notices, "the search has not converged"
    return found


def at(trial: FrozenTrial) -> np.ndarray:
    return np.array([trial.params["a"], trial.params["b"]])


def asked(study: optuna.Study) -> Params:
    return study.ask(SPACE).params


def test_a_converged_search_looks_elsewhere_and_keeps_a_share(search: Search) -> None:
    best = np.array([0.3, 0.35])
    later = search.trials[search.start : search.start + _AFTER]
    is_near = {t.number: np.linalg.norm(at(t) - best) < 0.05 for t in later}
    assert is_near[search.start] is np.False_
    assert sum(is_near.values()) <= _AFTER / 2
    known = next(n for n in is_near if n % 8 == 0)
    study = search.study(known)
    study.sampler = GPEIOptChooser(seed=0, elsewhere=False)
    assert asked(study) == search.trials[known].params
    assert len(search.notices[search.start]) == 1
    assert f"trial {search.start + 1} " in search.notices[search.start][0]
    assert len(search.notices) <= 4, "a message for each restart, not for each trial"


def test_the_trials_before_are_bit_for_bit_those_of_a_search_that_does_not(search: Search) -> None:
    without = searched(search.start + 1, elsewhere=False)
    assert not without.notices
    same = [a.params == b.params for a, b in zip(search.trials, without.trials, strict=False)]
    assert same == [True] * search.start + [False]


def test_a_killed_search_continues_with_the_same_proposals(search: Search) -> None:
    for n in range(search.start, search.start + _AFTER, 4):
        assert asked(search.study(n)) == search.trials[n].params


def test_a_restart_does_not_know_the_values_of_earlier_trials(search: Search) -> None:
    start = search.start
    n = next(n for n in range(start + 8, start + _AFTER) if n % 2)

    def lowered(trial: FrozenTrial) -> FrozenTrial | None:
        if trial.number >= start or not trial.values or trial.values[0] < 0.01:
            return None
        value = 0.5 * trial.values[0] + 0.01
        return create_trial(params=trial.params, distributions=SPACE, value=value)

    assert asked(search.study(n, lowered)) == search.trials[n].params


def test_trials_that_run_at_the_same_time_are_shared_too(search: Search) -> None:
    study = search.study(search.start)
    sampler = study.sampler
    assert isinstance(sampler, GPEIOptChooser)
    points = list(islice(sampler.ask_many(study, SPACE), 9))
    assert points[0] == search.trials[search.start].params
    assert len({tuple(p.values()) for p in points}) == 9
    assert len(sampler.notices()) == 1
    running = search.study(search.start)
    running.add_trials(
        [create_trial(state=TrialState.RUNNING, params=p, distributions=SPACE) for p in points[:4]]
    )
    n = search.start + 4
    past = history(running, trials_of(running, n), dict(SPACE))
    assert Restarts(past, 0).starts == [-1], "its first trial runs"
    assert asked(running) not in points[:4]


def test_a_restart_whose_first_trial_failed_goes_ahead(search: Search) -> None:
    start = search.start

    def failed(trial: FrozenTrial) -> FrozenTrial | None:
        if trial.number != start:
            return None
        return create_trial(state=TrialState.FAIL, params=trial.params, distributions=SPACE)

    study = search.study(start + 1, failed)
    asked(study)
    assert isinstance(study.sampler, GPEIOptChooser)
    assert study.sampler.notices() == []


def test_with_few_trials_left_all_belong_to_the_known_minimum(search: Search) -> None:
    few, enough = search.study(search.start), search.study(search.start)
    assert isinstance(few.sampler, GPEIOptChooser)
    assert isinstance(enough.sampler, GPEIOptChooser)
    few.sampler.total = search.start + 9  # three quarters of 9 are fewer than 3 + 2 * 2
    enough.sampler.total = search.start + 10
    without = search.study(search.start)
    without.sampler = GPEIOptChooser(seed=0, elsewhere=False)
    assert asked(few) == asked(without)
    assert asked(enough) == search.trials[search.start].params


def test_a_noisy_search_does_not_look_elsewhere() -> None:
    rng = np.random.default_rng(1)
    noisy = searched(30, lambda p: bowl(p) + 0.05 * rng.standard_normal())
    assert not noisy.notices


def test_a_lower_minimum_takes_over_and_another_restart_ends(search: Search) -> None:
    """The trials of the first restart lead to a lower minimum at (0.9, 0.9)."""
    start, new = search.start, np.array([0.9, 0.9])
    past = search.past(start + 1)
    rows = np.array([t.number for t in past.trials])
    numbers = range(start + 1, start + 16)
    near = [new + 1e-4 * n for n in range(15)]

    def with_values(value: float) -> Restarts:
        later = [completed(n) for n in numbers]
        losses = [value + 1e-6 * np.sum((x - new) ** 2) for x in near]
        return Restarts(
            replace(
                past,
                points=np.concatenate((past.points, near)),
                losses=np.concatenate((past.losses, np.array(losses)[:, None])),
                trials=(*past.trials, *later),
            ),
            0,
        )

    assert list(rows) == list(range(start + 1))
    lower, higher = with_values(-1.0), with_values(0.1)
    assert lower.has_lowest
    assert not higher.has_lowest
    assert lower.has_settled, "all trials since the restart are at its best point"
    assert higher.has_settled
    model = Model(0, 3, np.inf, np.random.default_rng, fitted_to, print, print)
    n = next(n for n in range(start + 17, start + 20) if n % 2)
    another = points_with_restarts(model, higher.past, n)
    assert another is not None
    assert np.allclose(next(another), higher.first_of_next)
    last = points_with_restarts(replace(model, left=8), higher.past, n)
    assert last is not None
    assert np.allclose(next(last), [0.5, 0.5]), "no time for another: the model of all trials"


def test_the_known_minimum_has_half_of_the_trials_while_it_gains(search: Search) -> None:
    past = search.past(search.start + 1)
    best = int(np.argmin(past.y))
    spread = float(np.median(past.y) - past.y.min())
    for gain, known in ((1e-3, [2, 4, 6, 8]), (1e-6, [8])):
        losses = past.losses.copy()
        before = np.delete(np.arange(search.start), best)
        losses[best] = losses[before].min() + spread  # not the best any more
        losses[search.start - 1] = losses[before].min() - gain * spread
        restarts = Restarts(replace(past, losses=losses), 0)
        assert [n for n in range(1, 9) if restarts.is_known(n)] == known


def test_a_restart_that_leads_back_is_over(search: Search) -> None:
    past = search.past(search.start + 1)
    where = np.array([[0.9, 0.1], [0.1, 0.9], [0.6, 0.7], [0.4, 0.45]])
    values = [bowl({"a": a, "b": b}) for a, b in where]
    odd = [n for n in range(search.start + 1, search.start + 12) if n % 2]
    for n, leads_back in ((3, False), (4, True)):
        later = replace(
            past,
            points=np.concatenate((past.points, where[:n])),
            losses=np.concatenate((past.losses, np.array(values[:n])[:, None])),
            trials=(*past.trials, *map(completed, odd[:n])),
        )
        assert Restarts(later, 0).leads_back is leads_back


def test_all_lines_to_minima_are_predicted_by_one_fit(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[Any] = []

    def counted(*args: Any) -> Any:
        fits.append(args)
        return predict(*args)

    monkeypatch.setattr(basins, "predict", counted)
    past = search.past(search.start)
    minima = np.array([[0.85, 0.8], [0.9, 0.1], [0.1, 0.9], [0.3, 0.35]])
    assert not is_in_basin(past, np.array([0.31, 0.35]), minima, -1e6)
    assert len(fits) == 1


def test_a_point_is_in_a_basin_if_no_hill_is_between() -> None:
    rng = np.random.default_rng(0)
    two = np.concatenate((rng.random((40, 2)), [[0.25, 0.5], [0.75, 0.5], [0.4, 0.6]]))
    y = -np.exp(-((two[:, 0] - 0.25) ** 2 + (two[:, 1] - 0.5) ** 2) / 0.02)
    y -= 0.8 * np.exp(-((two[:, 0] - 0.75) ** 2 + (two[:, 1] - 0.5) ** 2) / 0.02)
    past = History(
        space=Space((Dimension(), Dimension())),
        points=two,
        losses=y[:, None],
        pending=two[:0],
        infeasible=two[:0],
        trials=(),
    )
    first, second, beside = two[-3:]
    assert is_in_basin(past, beside, first[None], 1.0)
    assert not is_in_basin(past, beside, second[None], 1.0)
    assert is_in_basin(past, beside, np.array([second, first]), 1.0)
    assert not is_in_basin(past, second, first[None], 1.0)
    mixed = replace(past, space=Space((Dimension(), Dimension(n_choices=2))))
    assert not is_in_basin(mixed, beside, first[None], 1.0), "another category"


def completed(number: int) -> FrozenTrial:
    trial = placeholder(number)
    trial.state = TrialState.COMPLETE
    return trial


def fitted_to(past: History, rngs: Any, on_fit: Any = None) -> Any:
    """Propose the centre of the space."""
    for _ in rngs:
        yield np.full(len(past.space), 0.5)


@pytest.mark.parametrize(
    ("improvement", "is_exact", "begins"),
    [(1e-5, True, True), (1e-3, True, False), (1e-5, False, False)],
)
def test_a_restart_begins_only_if_the_model_expects_nothing_more(
    search: Search, improvement: float, is_exact: bool, begins: bool
) -> None:
    def told(past: History, rngs: Any, on_fit: Any = None) -> Any:
        if on_fit is not None:
            on_fit(math.log(improvement), is_exact)
        yield from fitted_to(past, rngs)

    notices: list[str] = []
    model = Model(0, 3, np.inf, np.random.default_rng, told, notices.append, print)
    past = search.past(search.start)
    points = points_with_restarts(model, past, search.start)
    assert points is not None
    first = next(points)
    assert np.array_equal(first, Restarts(past, 0).first_of_next) is begins
    assert np.array_equal(first, [0.5, 0.5]) is not begins
    assert bool(notices) is begins


def test_a_batch_of_two_that_begins_with_an_even_number_looks_elsewhere(search: Search) -> None:
    """Searches that ask for 2, 4 or 8 trials at a time have only such batches."""
    past, n = search.past(search.start), search.start + 1
    first, second, *_ = batch_of(past, n, left=math.inf)
    np.testing.assert_array_equal(first, [0.5, 0.5])
    np.testing.assert_array_equal(second, Restarts(past, 0).first_of_next)
    for point in batch_of(past, n, left=10.0):  # 9 after the first one
        np.testing.assert_array_equal(point, [0.5, 0.5])


def batch_of(past: History, number: int, *, left: float) -> list[Any]:
    def told(past: History, rngs: Any, on_fit: Any = None) -> Any:
        if on_fit is not None:
            on_fit(math.log(1e-5), True)
        yield from fitted_to(past, rngs)

    notices: list[str] = []
    model = Model(0, 3, left, np.random.default_rng, told, notices.append, print)
    points = points_with_restarts(model, past, number)
    assert points is not None
    return list(islice(points, 2))


@pytest.mark.parametrize(
    "changes",
    [
        {"guesses": {0: (0.5, 0.1)}},
        {"infeasible": np.array([[0.1, 0.1]])},
        {"space": Space(tuple(Dimension(step=0.01) for _ in range(2)))},
        {"space": Space((Dimension(), Dimension()), conditions=((1, ((0, (0.0,)),)),))},
    ],
    ids=["guess", "infeasible", "finite", "conditional"],
)
def test_other_searches_do_not_look_elsewhere(search: Search, changes: dict[str, Any]) -> None:
    model = Model(0, 3, np.inf, np.random.default_rng, fitted_to, print, print)
    past = search.past(search.start)
    assert points_with_restarts(model, past, search.start) is not None
    assert points_with_restarts(model, replace(past, **changes), search.start) is None
    two = replace(past, losses=np.concatenate((past.losses, past.losses), axis=1))
    assert points_with_restarts(model, two, search.start) is None
    trial = completed(0)
    trial.set_user_attr(RUNGS, {"values": [0.5], "paused": False})
    rungs = replace(past, trials=(trial, *past.trials[1:]))
    assert points_with_restarts(model, rungs, search.start) is None


def test_a_restart_does_not_know_earlier_searches(search: Search) -> None:
    earlier = Ensemble(())
    past = replace(search.past(search.start + 1), ensemble=earlier)
    assert Restarts(past, 0).current.ensemble is None


def test_a_search_that_gains_or_moves_has_not_settled() -> None:
    far = np.array([[0.1, 0.9], [0.9, 0.1], [0.9, 0.9], [0.1, 0.1], [0.5, 0.9]])
    near = 0.5 + 1e-3 * np.arange(6)[:, None] * np.ones((6, 2))
    points, high = np.concatenate((far, near)), np.array([3.0, 4.0, 5.0, 6.0, 7.0])
    settled = np.concatenate((high, 1e-3 * np.arange(6)))
    gaining = np.concatenate((high, 0.5 - 0.1 * np.arange(6)))
    assert has_settled(points, settled)
    assert not has_settled(points, gaining)
    assert not has_settled(points[::-1], settled[::-1]), "its last trials are elsewhere"
    assert not has_settled(near, settled[5:]), "nothing to compare with"
    assert not has_settled(points[:3], settled[:3])
