from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna import create_study
from optuna.distributions import FloatDistribution
from scipy.stats import qmc

from spearmint.choosers import SequentialChooser
from spearmint.choosers.sobol import sobol_point


def test_points_fill_the_cube_jointly() -> None:
    for seed in range(3):
        points = np.array([sobol_point(seed, i, 6) for i in range(128)])
        random = np.random.default_rng(seed).random((128, 6))
        assert qmc.discrepancy(points) < 0.2 * qmc.discrepancy(random)
        # Every pair of dimensions is filled too.
        for i in range(5):
            assert qmc.discrepancy(points[:, i : i + 2]) < 2e-3


def test_the_proposals_of_a_study_fill_the_cube_jointly() -> None:
    space = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(4)}
    study = create_study(sampler=SequentialChooser(seed=1))
    points = np.array([list(study.ask(space).params.values()) for _ in range(64)])
    assert qmc.discrepancy(points) < 0.2 * qmc.discrepancy(np.random.default_rng(0).random((64, 4)))
    # Each of 64 slices of each parameter contains one point.
    for column in points.T:
        assert sorted(np.floor(column * 64).astype(int)) == list(range(64))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**63), st.integers(0, 5000), st.integers(1, 150))
def test_a_coordinate_does_not_depend_on_how_many_there_are(seed, index, n_dimensions) -> None:
    whole = sobol_point(seed, index, 150)
    assert whole.shape == (150,)
    assert ((whole >= 0.0) & (whole < 1.0)).all()
    np.testing.assert_array_equal(sobol_point(seed, index, n_dimensions), whole[:n_dimensions])


def test_beyond_the_known_dimensions() -> None:
    points = np.array([sobol_point(0, i, 1100) for i in range(4)])
    assert len(np.unique(points)) == points.size
    np.testing.assert_array_equal(points[1][:64], sobol_point(0, 1, 64))
