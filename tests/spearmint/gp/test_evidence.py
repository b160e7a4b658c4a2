from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import invgamma

from spearmint.gp.evidence import (
    A0,
    B0,
    LogPosterior,
    cholesky,
    default_prior,
    log_evidence,
)
from spearmint.gp.kernel import matern52, sq_differences
from spearmint.gp.packed_triangles import pack


def some_data(n: int, n_dimensions: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, n_dimensions))
    points[:, -1] = rng.integers(3, size=n)
    mask = np.zeros(n_dimensions, dtype=bool)
    mask[-1] = True
    y = np.sin(5.0 * points).sum(axis=1)
    return sq_differences(points, points, mask), (y - y.mean()) / y.std()


@pytest.mark.parametrize("noiseless", [False, True])
@pytest.mark.parametrize("theta_at", [0.0, -0.7, 0.5])
def test_gradient_of_the_log_posterior(noiseless: bool, theta_at: float) -> None:
    sq, y = some_data(15, 3)
    prior = default_prior(3, noiseless=noiseless)
    density = LogPosterior(pack(sq), y, prior)
    theta = prior.mean + theta_at * np.array([1.0, -0.5, 0.3, 2.0])
    value, gradient = density.with_gradient(theta)
    assert value == pytest.approx(density(theta), rel=1e-8)
    numeric = approx_fprime(theta, density, 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4)


def test_mean_and_amplitude_are_integrated_out() -> None:
    """The sum over a grid of mean and amplitude is equal, up to the constant of the flat prior."""
    sq, y = some_data(5, 2)
    mean = np.linspace(-40.0, 40.0, 1601)
    log_amplitude = np.linspace(np.log(1e-3), np.log(1e4), 800)
    amplitude = np.exp(log_amplitude)
    # d(amplitude) = amplitude d(log amplitude)
    log_prior = invgamma(A0, scale=B0).logpdf(amplitude) + log_amplitude
    constants = []
    for weights in ([1.0, 2.0], [8.0, 0.5], [30.0, 30.0]):
        k = matern52(np.tensordot(weights, sq, 1)) + 0.01 * np.eye(5)
        rest = y[:, None] - mean
        misfit = np.sum(rest * np.linalg.solve(k, rest), axis=0)
        log_det = np.linalg.slogdet(k)[1]
        log_normal = -0.5 * (misfit[:, None] / amplitude + 5.0 * log_amplitude + log_det)
        direct = logsumexp(log_normal + log_prior)
        constants.append(direct - log_evidence(pack(k), y[:, None])[0])
    np.testing.assert_allclose(constants, constants[0], atol=1e-3)


def test_outside_of_the_prior_there_is_nothing() -> None:
    sq, y = some_data(6, 2)
    prior = default_prior(2, noiseless=False)
    assert LogPosterior(pack(sq), y, prior)(prior.upper + 0.1) == -np.inf


def test_a_matrix_without_a_factor_has_no_evidence() -> None:
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert cholesky(bad.copy()) is None
    assert (log_evidence(pack(bad), np.ones((2, 3))) == -np.inf).all()


def test_evidence_of_many_columns_is_that_of_each() -> None:
    sq, y = some_data(12, 3)
    prior = default_prior(3, noiseless=False)
    many = np.stack((y, -2.0 * y, y**3), axis=1)
    found = LogPosterior(pack(sq), y, prior).evidence_of(prior.mean, many)
    each = [LogPosterior(pack(sq), column, prior)(prior.mean) for column in many.T]
    np.testing.assert_allclose(found, each, rtol=1e-10)
