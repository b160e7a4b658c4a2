"""HEBO with its defaults, with the same calls as the other methods of the search benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from search_problems import Params


class HeboMethod:
    """HEBO (Cowen-Rivers et al. 2022, JAIR 74:1269), one suggestion at a time."""

    def __init__(self, space: Mapping[str, BaseDistribution], seed: int, noiseless: bool) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - HEBO uses it
        self._choices = {
            name: each.choices
            for name, each in space.items()
            if isinstance(each, CategoricalDistribution)
        }
        known = DesignSpace().parse([_parameter(name, each) for name, each in space.items()])
        self._hebo = HEBO(known, scramble_seed=seed)
        self._running: dict[int, Any] = {}
        self._asked = 0

    def expect(self, total: int) -> None:
        """Ignore the number of trials."""

    def add(self, params: Params, value: float | None) -> None:
        """HEBO is not timed."""
        raise NotImplementedError("HEBO: searches only")

    def ask(self) -> tuple[int, Params]:
        """Return the point that HEBO suggests."""
        self._asked += 1
        rows = self._hebo.suggest(n_suggestions=1)
        self._running[self._asked] = rows
        found: Params = {}
        for name, cell in rows.iloc[0].to_dict().items():
            found[name] = self._choices[name][int(cell)] if name in self._choices else cell
        return self._asked, found

    def tell(self, key: int, value: float) -> None:
        """Set the value of the point ``key``."""
        self._hebo.observe(self._running.pop(key), np.array([[value]]))


def _parameter(name: str, distribution: BaseDistribution) -> dict[str, Any]:
    if isinstance(distribution, CategoricalDistribution):
        indices = [str(i) for i in range(len(distribution.choices))]  # a choice can be None
        return {"name": name, "type": "cat", "categories": indices}
    kind = "int" if isinstance(distribution, IntDistribution) else "num"
    if distribution.log:
        kind = "pow_int" if kind == "int" else "pow"
    known = {"name": name, "type": kind, "lb": distribution.low, "ub": distribution.high}
    return known | ({"base": 10} if distribution.log else {})
