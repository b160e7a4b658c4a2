"""A chooser that mutates the best point: ``--method=mutation_chooser:MutationChooser``."""

import numpy as np

from spearmint.acquisition import first_new
from spearmint.choosers import ModelChooser


class MutationChooser(ModelChooser):
    """Copy the best point and redraw some of its coordinates."""

    def __init__(self, *, rate: float = 0.3, seed: int | None = None) -> None:
        """Set the fraction of coordinates to redraw; ``--method-args=rate=0.2``."""
        super().__init__(seed=seed)
        self.rate = rate

    def best_point(self, past, rng):
        """Return a mutation that was not tried before."""
        best = past.points[np.argmin(past.y)]
        draws = past.space.from_cube(rng.random((64, len(best))))
        children = np.where(rng.random(draws.shape) < self.rate, draws, best)
        seen = np.concatenate((past.tried, past.pending))
        return first_new(past.space, children, seen, rng)
