'''Tests for authors of choosers: subclass :class:`ChooserContract` and set your chooser.

Needs pytest. Each rule of :class:`spearmint.choosers.Chooser` is a test. The same trials, seed and
trial number must give the same proposal, also in another process. For any history, proposals must
be valid, of the right types and distinct. The study must not change.

Example:
    A chooser, in a file ``mutation.py``::

        import numpy as np

        from spearmint.acquisition import first_new
        from spearmint.choosers import ModelChooser


        class MutationChooser(ModelChooser):
            """Copy the best point and redraw some of its coordinates."""

            def __init__(self, *, rate: float = 0.3, seed: int | None = None) -> None:
                super().__init__(seed=seed)
                self.rate = rate

            def best_point(self, past, rng):
                best = past.points[np.argmin(past.y)]
                draws = past.space.from_cube(rng.random((64, len(best))))
                children = np.where(rng.random(draws.shape) < self.rate, draws, best)
                seen = np.concatenate((past.tried, past.pending))
                return first_new(past.space, children, seen, rng)

    Its test, in a file ``test_mutation.py``; run it with ``pytest``::

        from spearmint.choosers.testing import ChooserContract


        class TestMutationChooser(ChooserContract):
            chooser = "mutation:MutationChooser"

    A search with this chooser, run in the directory of both files::

        PYTHONPATH=. spearmint --method=mutation:MutationChooser --method-args=rate=0.2 config.pb
'''

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spearmint.choosers.testing.histories import (
    FLOATS,
    MIXED,
    Distributions,
    assert_legal,
    proposals,
    study_with,
    value_of,
)
from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.choosers.testing.contract import ChooserContract

__all__ = [
    "FLOATS",
    "MIXED",
    "ChooserContract",
    "Distributions",
    "assert_legal",
    "proposals",
    "study_with",
    "value_of",
]

# Must precede the import of the contract, so that pytest shows the values of a failed assert.
pytest.register_assert_rewrite(
    "spearmint.choosers.testing.contract", "spearmint.choosers.testing.degenerate"
)
__getattr__ = lazy_names(__name__, {"ChooserContract": "spearmint.choosers.testing.contract"})
