"""RandomForestEIChooser: expected improvement under a random forest. Needs scikit-learn."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from spearmint.choosers.model_chooser import ModelChooser
from spearmint.errors import InputError
from starmint import extra_command

if TYPE_CHECKING:
    from spearmint.choosers.history import History
    from spearmint.gp.numerics import Array
    from spearmint.gp.space import Space

# Number of candidates everywhere in the first round, and in a second round around the best.
_N_GLOBAL, _N_MORE, _BEST = 2048, 64, 5
# Minimum variance of standardised values: points where all trees agree still have uncertainty.
_VARIANCE_FLOOR = 1e-6


class RandomForestEIChooser(ModelChooser):
    """Choose the point where a random forest expects most improvement.

    Args:
        n_trees: Number of trees.
        min_samples_leaf: Minimum number of trials in a leaf.
        warp: Whether to learn a monotone transformation of the objective.
        seed: Any integer. Default: random.

    Raises:
        InputError: scikit-learn is not installed.
    """

    def __init__(
        self,
        *,
        n_trees: int = 100,
        min_samples_leaf: int = 1,
        warp: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed=seed)
        if not find_spec("sklearn"):
            raise InputError(
                "RandomForestEIChooser needs scikit-learn",
                f"Install it: {extra_command('forest')}",
            )
        for name, value in {"n_trees": n_trees, "min_samples_leaf": min_samples_leaf}.items():
            if value < 1:
                raise InputError(f"invalid {name} {value}: expected at least 1")
        self.n_trees = n_trees
        self.min_samples_leaf = min_samples_leaf
        self.warp = warp

    def best_point(self, past: History, rng: np.random.Generator) -> Array:
        """Return the point with the largest expected improvement."""
        from spearmint.acquisition.maximize import candidates
        from spearmint.acquisition.next_point import first_new
        from spearmint.gp.output_warp import standardise, warps

        y = max(warps(past.y), key=lambda view: view.log_weight).values
        y = y if self.warp else standardise(past.y)
        forest = self._fit(past, y, rng)
        best = past.points[np.argsort(y, kind="stable")[:_BEST]]
        for n_points in (_N_GLOBAL, _N_MORE):
            pool = candidates(past.space, best, rng, n_global=n_points)
            value = forest.log_ei(pool, float(y.min()))
            order = np.argsort(-value, kind="stable")
            best = np.concatenate((best, pool[order[:_BEST]]))
        return first_new(past.space, pool[order], np.concatenate((past.points, past.pending)), rng)

    def _fit(self, past: History, y: Array, rng: np.random.Generator) -> Forest:
        """Return the forest; each running trial counts with its predicted mean.

        This is the "kriging believer" of Ginsbourger, Le Riche and Carraro 2010.
        """
        settings = {
            "n_estimators": self.n_trees,
            "min_samples_leaf": self.min_samples_leaf,
            "random_state": int(rng.integers(1 << 31)),
        }
        forest = Forest(past.space, past.points, y, settings)
        if not len(past.pending):
            return forest
        believed = np.concatenate((y, forest.predict(past.pending)[0]))
        return Forest(past.space, np.concatenate((past.points, past.pending)), believed, settings)


class Forest:
    """A random forest over points; a category has one column for each choice."""

    def __init__(self, space: Space, points: Array, y: Array, settings: dict[str, Any]) -> None:
        """Fit to ``points`` (n, D) and ``y`` (n,)."""
        from sklearn.ensemble import RandomForestRegressor

        self._space = space
        self._model = RandomForestRegressor(**settings).fit(self._columns(points), y)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and variance at ``points``, each of shape ``(m,)``.

        For trees t with leaf means mu_t and leaf variances s_t^2, these are mean_t(mu_t) and
        mean_t(s_t^2 + mu_t^2) - mean_t(mu_t)^2. Source: Hutter, Xu, Hoos and Leyton-Brown 2014
        (arXiv:1211.0906), the predictive distribution of a random forest.
        """
        leaves = self._model.apply(self._columns(points))
        trees = [tree.tree_ for tree in self._model.estimators_]
        mean = np.array([t.value[leaves[:, i], 0, 0] for i, t in enumerate(trees)])
        inside = np.array([t.impurity[leaves[:, i]] for i, t in enumerate(trees)])
        return mean.mean(axis=0), mean.var(axis=0) + inside.mean(axis=0)

    def log_ei(self, points: Array, target: float) -> Array:
        """Return the log of the expected improvement below ``target``, shape ``(m,)``.

        This is log s + log h(u), where s^2 is the variance and u = (target - mean) / s; see
        :mod:`spearmint.acquisition.log_ei`.
        """
        from spearmint.acquisition.log_ei import log_h

        mean, variance = self.predict(points)
        std = np.sqrt(np.maximum(variance, _VARIANCE_FLOOR))
        return np.asarray(np.log(std) + log_h((target - mean) / std)[0])

    def _columns(self, points: Array) -> Array:
        """Return the feature columns of ``points``."""
        columns = []
        for d, column in zip(self._space.dimensions, points.T, strict=True):
            choices = range(d.n_choices) if d.n_choices > 2 else ()
            columns += [column == c for c in choices] or [column]
        return np.stack(columns, axis=1).astype(np.float64)
