"""Predict values at other points by a Gaussian process at the mode of its hyperparameters."""

from __future__ import annotations

import numpy as np

from spearmint.gp.evidence import LogPosterior, default_prior
from spearmint.gp.hypers import posterior_mode
from spearmint.gp.kernel import sq_differences
from spearmint.gp.numerics import Array, one_blas_thread
from spearmint.gp.output_warp import standardise
from spearmint.gp.packed_triangles import pack
from spearmint.gp.posterior import condition
from spearmint.gp.space import Space

# Maximum number of observations: the other ones have little information on the best region.
_MOST = 500


def predict(space: Space, points: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Return the expected values at ``at`` and their standard deviations, without noise.

    Both are in standard deviations of ``y``; values are from its mean.

    Args:
        space: The D dimensions.
        points: Observed points, shape ``(n, D)``, n >= 2; only the best 500 are used.
        y: Finite observations, shape ``(n,)``, to be minimised.
        at: Points to predict at, shape ``(m, D)``.

    Source: Rasmussen and Williams 2006, eq. 2.25.
    """
    kept = np.argsort(y, kind="stable")[:_MOST]
    points, values = points[kept], standardise(y)[kept]
    with one_blas_thread():
        prior = default_prior(len(space), noiseless=False)
        sq = pack(sq_differences(points, points, space.is_category))
        mode = posterior_mode(LogPosterior(sq, values, prior), prior.mean)
        posterior = condition(
            points,
            values,
            points[:0],
            mode[None],
            space.is_category,
            n_fantasies=1,
            rng=np.random.default_rng(0),
        )
        mean, variance = posterior.predict(at)
    return mean[0, :, 0], np.sqrt(variance[0])
