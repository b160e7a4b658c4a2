"""Trials of an earlier search in the coordinates of another search."""

from __future__ import annotations

import numpy as np

from spearmint.gp.space import Dimension, Space
from spearmint.transfer import (
    EarlierSearch,
    EarlierTrial,
    Task,
    Variables,
    for_region,
    matched,
    seed_points,
)

SPACE = Space(
    (
        Dimension(n_choices=2),
        Dimension(low=1e-4, high=1.0, log=True),
        Dimension(low=1.0, high=9.0, step=1.0),
    )
)
VARIABLES = Variables(("act", "lr", "n"), SPACE, (("relu", "tanh"), (), ()))


def search(*rows: dict[str, float | str], maximize: bool = False) -> EarlierSearch:
    """Return a search with values 0, 1, 2, ..."""
    trials = tuple(EarlierTrial(row, float(i)) for i, row in enumerate(rows))
    return EarlierSearch(name="old", maximize=maximize, trials=trials, n_complete=len(rows))


def at(count: int = 6, **params: float | str) -> list[dict[str, float | str]]:
    return [{"act": "tanh", "lr": 0.01, "n": 5.0, **params} for _ in range(count)]


def test_equal_searches_have_equal_coordinates() -> None:
    task = matched(search(*at()), VARIABLES)
    np.testing.assert_allclose(task.points, [[1.0, 0.5, 0.5]] * 6)
    np.testing.assert_array_equal(task.y, np.arange(6.0))
    assert task.is_usable
    assert task.text == "old: 6 trials, variables act, lr, n"


def test_a_search_without_a_searched_variable_learns_nothing() -> None:
    task = matched(search(*at()), Variables((), Space(()), ()))
    assert task.problem == ": no variable of this search"


def test_a_maximised_value_is_negated() -> None:
    task = matched(search(*at(), maximize=True), VARIABLES)
    np.testing.assert_array_equal(task.y, -np.arange(6.0))


def test_trials_a_little_outside_of_the_bounds_teach_and_those_far_outside_do_not() -> None:
    rows = [*at(), *at(2, lr=10.0), *at(2, lr=1e9), *at(1, lr=-1.0)]
    task = matched(search(*rows), VARIABLES)
    assert len(task.y) == 8
    assert task.points[:, 1].max() > 1.0
    assert task.text == "old: 8 of 11 trials, variables act, lr, n"


def test_a_variable_of_other_bounds_kind_or_choices_is_not_shared() -> None:
    task = matched(search(*at(lr=1e9)), VARIABLES)
    assert task.shared.tolist() == [0, 2]
    assert task.text == "old: 6 trials, variables act, n; not: lr (other bounds there)"
    assert "act (a number there)" in matched(search(*at(act=3.0)), VARIABLES).text
    assert "act (other choices there)" in matched(search(*at(act="gelu")), VARIABLES).text
    assert "n (a category there)" in matched(search(*at(n="five")), VARIABLES).text


def test_variables_of_one_search_only_are_named() -> None:
    rows = [{"lr": 0.01, "n": 5.0, "drop\x1b[2J": 0.1} for _ in range(6)]
    task = matched(search(*rows), VARIABLES)
    assert task.text == (
        "old: 6 trials, variables lr, n; not: act (not in that search), "
        "drop?[2J (not searched here)"
    )
    np.testing.assert_array_equal(task.points[:, 0], SPACE.centre[0])


def test_nothing_in_common_few_trials_and_equal_values_teach_nothing() -> None:
    assert "no variable" in matched(search({"x": 1.0}, {"x": 2.0}), VARIABLES).problem
    assert "fewer than 5" in matched(search(*at(3)), VARIABLES).problem
    assert "fewer than 5" in matched(search(), VARIABLES).problem or not search().trials
    same = tuple(EarlierTrial(row, 1.0) for row in at())
    flat = EarlierSearch(name="old", maximize=False, trials=same, n_complete=6)
    assert "equal" in matched(flat, VARIABLES).problem


def test_an_inactive_variable_does_not_have_to_have_a_value() -> None:
    space = Space(SPACE.dimensions, conditions=((1, ((0, (1.0,)),)),))  # lr needs tanh
    variables = Variables(VARIABLES.names, space, VARIABLES.choices)
    rows = [{"act": "relu", "n": 5.0}, *at(5), {"act": "relu", "lr": 0.5, "n": 5.0}]
    task = matched(search(*rows), variables)
    assert len(task.y) == 7
    np.testing.assert_array_equal(task.points[[0, 6], 1], space.centre[1])
    assert task.points[1, 1] == 0.5


def _task(points: list[list[float]], *, feasible: bool = True) -> Task:
    rows = np.array(points)
    return Task(rows, np.arange(float(len(rows))), np.full(len(rows), feasible), np.arange(2), "")


PLANE = Space((Dimension(), Dimension()))


def test_seeds_are_the_best_points_far_from_each_other_in_turns() -> None:
    first = _task([[0.1, 0.1], [0.12, 0.1], [0.5, 0.5], *[[0.9, 0.9]] * 20])
    second = _task([[0.1, 0.14], [0.3, 0.9], *[[0.9, 0.9]] * 20])
    found = [point.tolist() for _, point in seed_points(PLANE, [first, second], 4)]
    assert found == [[0.1, 0.1], [0.3, 0.9], [0.5, 0.5], [0.9, 0.9]]
    assert len(seed_points(PLANE, [first, second], 1)) == 1


def test_seeds_are_feasible_and_within_the_bounds() -> None:
    assert not seed_points(PLANE, [_task([[0.1, 0.1]] * 9, feasible=False)], 2)
    outside = _task([[1.2, 0.1], [0.4, 0.1], [0.1, -0.3]])
    assert [p.tolist() for _, p in seed_points(PLANE, [outside], 2)] == [[0.4, 0.1]]


def test_a_region_learns_from_its_own_last_generation_and_a_new_one_from_the_others() -> None:
    def of(region: str, *, is_own: bool = True) -> EarlierSearch:
        return EarlierSearch(
            name=region, maximize=False, trials=(), n_complete=0, region=region, is_own=is_own
        )

    others = [of("us", is_own=False)]
    own = [of(region) for region in ("us", "de", "a", "b", "c", "d")]
    assert for_region(others + own, "de") == [*others, own[1]]
    assert for_region(others + own, "fr") == [*others, *own[:5]]
    assert for_region(others, "fr") == others
