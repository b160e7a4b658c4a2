"""GPEIChooser: the best of many points by expected improvement, none refined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spearmint.choosers.gp_ei_opt import GPEIOptChooser
from spearmint.errors import InputError

if TYPE_CHECKING:
    from spearmint.gp.settings import Settings


class GPEIChooser(GPEIOptChooser):
    """Choose the Sobol point where a Gaussian process expects most improvement.

    Args:
        mcmc_iters, burnin, noiseless, pending_samples, warp, input_warp, seed: As of
            :class:`spearmint.choosers.GPEIOptChooser`.
        grid_size: Sobol points judged, new ones for each proposal.
    """

    def __init__(
        self,
        *,
        mcmc_iters: int = 10,
        burnin: int = 6,
        noiseless: bool = False,
        pending_samples: int = 8,
        grid_size: int = 4096,
        warp: bool = True,
        input_warp: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            mcmc_iters=mcmc_iters,
            burnin=burnin,
            noiseless=noiseless,
            pending_samples=pending_samples,
            warp=warp,
            input_warp=input_warp,
            seed=seed,
        )
        if grid_size < 1:
            raise InputError(f"grid_size is {grid_size}, must be at least 1")
        self.grid_size = grid_size

    def _settings(self) -> Settings:
        """Return the settings of a search without refinement."""
        return replace(super()._settings(), grid_size=self.grid_size)
