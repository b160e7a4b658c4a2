"""The optimum of a learning rate is found although its scale was declared as linear."""

from __future__ import annotations

import pytest

from spearmint.choosers import GPEIChooser, GPEIOptChooser
from tests.spearmint.choosers.claims import best_on_wrong_scale


@pytest.mark.parametrize(("chooser", "seed"), [(GPEIOptChooser, 0), (GPEIChooser, 2)])
def test_an_input_warp_finds_a_wrong_scale(
    chooser: type[GPEIOptChooser] | type[GPEIChooser], seed: int
) -> None:
    found = {
        warp: best_on_wrong_scale(chooser(seed=seed, noiseless=True, input_warp=warp))
        for warp in (True, False)
    }
    assert found[True] < 0.1 * found[False], found
