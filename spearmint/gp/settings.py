"""Settings of a search by a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Arguments of a search; :class:`spearmint.choosers.GPEIOptChooser` explains them."""

    mcmc_iters: int = 10
    burnin: int = 6
    noiseless: bool = False
    pending_samples: int = 8
    grid_subset: int = 20
    grid_size: int = 0
    warp: bool = True
    input_warp: bool = True
