from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from spearmint.choosers import RandomChooser, RandomForestEIChooser, make_chooser
from spearmint.choosers.random_forest import Forest
from spearmint.errors import InputError
from spearmint.gp.space import Dimension, Space
from tests.spearmint.choosers.claims import best_on_jumps

SPACE = Space((Dimension(), Dimension(n_choices=3), Dimension(n_choices=2)))
SETTINGS = {"n_estimators": 20, "min_samples_leaf": 3, "random_state": 0}


@pytest.fixture
def forest() -> Forest:
    points = SPACE.from_cube(np.random.default_rng(0).random((40, 3)))
    return Forest(SPACE, points, np.sin(5 * points[:, 0]) + (points[:, 1] == 1.0), SETTINGS)


def test_mean_and_variance_are_those_of_a_tree_and_a_leaf_at_random(forest) -> None:
    new = SPACE.from_cube(np.random.default_rng(1).random((4, 3)))
    mean, variance = forest.predict(new)
    columns = forest._columns(new)
    np.testing.assert_allclose(mean, forest._model.predict(columns))
    each = []
    for tree in forest._model.estimators_:
        leaf = tree.apply(columns)
        each.append(np.array([tree.tree_.impurity[leaf], tree.tree_.value[leaf, 0, 0]]))
    second_moment = np.mean([inside + mean_t**2 for inside, mean_t in each], axis=0)
    np.testing.assert_allclose(variance, second_moment - mean**2, atol=1e-10)


def test_log_ei_is_the_log_of_an_integral(forest) -> None:
    new = SPACE.from_cube(np.random.default_rng(2).random((4, 3)))
    mean, variance = forest.predict(new)
    for i, value in enumerate(forest.log_ei(new, -0.2)):
        m, s = mean[i], np.sqrt(variance[i])
        ei, _ = quad(lambda f, m=m, s=s: (-0.2 - f) * norm.pdf(f, m, s), -0.2 - 20 * s, -0.2)
        assert value == pytest.approx(np.log(ei), rel=1e-5)


def test_a_category_is_a_column_for_each_choice(forest) -> None:
    assert forest._columns(np.array([[0.25, 2.0, 1.0]])).tolist() == [[0.25, 0.0, 0.0, 1.0, 1.0]]


def test_it_beats_chance_on_jumps() -> None:
    assert best_on_jumps(RandomForestEIChooser(seed=1)) < best_on_jumps(RandomChooser(seed=1))


def test_a_missing_library_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match="scikit-learn") as error:
        make_chooser("RandomForestEI", {}, seed=0)
    assert "scikit-learn>=" in error.value.fix


@pytest.mark.parametrize("wrong", [{"n_trees": 0}, {"min_samples_leaf": 0}])
def test_wrong_arguments(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=rf"{next(iter(wrong))} 0\b.*\b1\b"):
        RandomForestEIChooser(**wrong)
