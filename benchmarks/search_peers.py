"""Methods of other libraries than Optuna, with the same three calls: BoTorch and SMAC3."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from search_problems import Params

Space = Mapping[str, BaseDistribution]


class BoTorchMethod:
    """BoTorch in a typical set-up: SingleTaskGP and the logarithm of expected improvement.

    The kernel is Matern 5/2 with the prior Gamma(3, 6) of the length scales, the default of BoTorch
    until 0.12. Categories are one-hot, and ``optimize_acqf_mixed`` tries all of them. Integers are
    relaxed and rounded.
    """

    restarts, raw_samples = 8, 256

    def __init__(self, space: Space, seed: int, noiseless: bool) -> None:
        import torch
        from scipy.stats import qmc

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._space, self._noiseless = dict(space), noiseless
        self._sobol = qmc.Sobol(len(space), scramble=True, rng=seed)
        self._initial = max(4, 2 * len(space))
        self._done: list[tuple[list[float], float]] = []
        self._running: dict[int, list[float]] = {}
        self._asked = 0

    def expect(self, total: int) -> None:
        """Ignore the number of trials."""

    def add(self, params: Params, value: float | None) -> None:
        """Add a point that BoTorch did not propose; it is running if ``value`` is None."""
        self._asked += 1
        self._running[self._asked] = self._encode(params)
        if value is not None:
            self.tell(self._asked, value)

    def ask(self) -> tuple[int, Params]:
        """Return a Sobol point for the first trials, then the maximum of the acquisition."""
        n = len(self._done)
        if n < 2 or n + len(self._running) < self._initial:
            cells = zip(self._space.items(), self._sobol.random(1)[0], strict=True)
            params = {name: _native(distribution, u) for (name, distribution), u in cells}
        else:
            params = self._decode(self._maximize())
        self._asked += 1
        self._running[self._asked] = self._encode(params)
        return self._asked, params

    def tell(self, key: int, value: float) -> None:
        """Set the value of the point ``key``."""
        self._done.append((self._running.pop(key), value))

    def _maximize(self) -> list[float]:
        """Return the encoded point with the largest acquisition."""
        import torch
        from botorch.optim import optimize_acqf, optimize_acqf_mixed

        points = torch.tensor([point for point, _ in self._done], dtype=torch.double)
        values = -torch.tensor([[value] for _, value in self._done], dtype=torch.double)
        acquisition = self._acquisition(self._model(points, values), points, values)
        d = points.shape[1]
        bounds = torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.double)
        fixed = self._fixed_features()
        if len(fixed) == 1:
            best, _ = optimize_acqf(
                acquisition,
                bounds,
                q=1,
                num_restarts=self.restarts,
                raw_samples=self.raw_samples,
            )
        else:
            best, _ = optimize_acqf_mixed(
                acquisition,
                bounds,
                q=1,
                num_restarts=self.restarts // 2,
                raw_samples=self.raw_samples // 2,
                fixed_features_list=fixed,
            )
        return best[0].tolist()

    def _model(self, points: Any, values: Any) -> Any:
        """Return the fitted model."""
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
        from gpytorch.mlls import ExactMarginalLogLikelihood

        # Without noise: 1e-6 of the variance, the minimum of GPyTorch.
        variance = torch.full_like(values, 1e-6) * values.var() if self._noiseless else None
        model = SingleTaskGP(
            points,
            values,
            train_Yvar=variance,
            covar_module=get_matern_kernel_with_gamma_prior(ard_num_dims=points.shape[1]),
            outcome_transform=Standardize(1),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _acquisition(self, model: Any, points: Any, values: Any) -> Any:
        """Return LogEI, or qLogNEI if there is noise or if other trials are running."""
        import torch
        from botorch.acquisition import LogExpectedImprovement
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        running = list(self._running.values())
        if self._noiseless and not running:
            return LogExpectedImprovement(model, best_f=values.max())
        return qLogNoisyExpectedImprovement(
            model,
            X_baseline=points,
            X_pending=torch.tensor(running, dtype=torch.double) if running else None,
            prune_baseline=True,
        )

    def _fixed_features(self) -> list[dict[int, float]]:
        """Return the one-hot columns of each combination of categories."""
        fixed: list[dict[int, float]] = [{}]
        column = 0
        for distribution in self._space.values():
            width = _width(distribution)
            if width > 1:
                columns = range(column, column + width)
                hot = [{c: float(c == chosen) for c in columns} for chosen in columns]
                fixed = [known | more for known in fixed for more in hot]
            column += width
        return fixed

    def _encode(self, params: Params) -> list[float]:
        point: list[float] = []
        for name, distribution in self._space.items():
            point += _unit(distribution, params[name])
        return point

    def _decode(self, point: list[float]) -> Params:
        params, column = {}, 0
        for name, distribution in self._space.items():
            cell = point[column : column + _width(distribution)]
            u = (int(np.argmax(cell)) + 0.5) / len(cell) if len(cell) > 1 else cell[0]
            params[name] = _native(distribution, u)
            column += len(cell)
        return params


def _width(distribution: BaseDistribution) -> int:
    """Return the number of columns of a variable: 1, or the number of categories."""
    is_category = isinstance(distribution, CategoricalDistribution)
    return len(distribution.choices) if is_category else 1


def _unit(distribution: BaseDistribution, value: Any) -> list[float]:
    """Return ``value`` scaled to [0, 1], or one-hot for a category."""
    if isinstance(distribution, CategoricalDistribution):
        return [float(value == choice) for choice in distribution.choices]
    low, high = _ends(distribution)
    value = math.log(value) if distribution.log else value
    return [(value - low) / (high - low)]


def _native(distribution: BaseDistribution, u: float) -> Any:
    """Return the value at ``u`` in [0, 1]; integers and categories have equal parts."""
    u = min(max(float(u), 0.0), 1.0)
    if isinstance(distribution, CategoricalDistribution):
        n = len(distribution.choices)
        return distribution.choices[min(int(u * n), n - 1)]
    low, high = _ends(distribution)
    value = low + u * (high - low)
    value = math.exp(value) if distribution.log else value
    value = round(value) if isinstance(distribution, IntDistribution) else value
    return min(max(value, distribution.low), distribution.high)


def _ends(distribution: BaseDistribution) -> tuple[float, float]:
    """Return the values at 0 and 1, or their logarithms for a logarithmic scale.

    For integers they are half a step outside the bounds.
    """
    half = 0.5 if isinstance(distribution, IntDistribution) else 0.0
    low, high = distribution.low - half, distribution.high + half
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


class SmacMethod:
    """SMAC3 with its default for hyperparameters: a random forest and log EI.

    Seed and number of trials are the only settings; SMAC chooses its first points by its own
    design, at most a quarter of the trials.
    """

    facade = "HyperparameterOptimizationFacade"

    def __init__(self, space: Space, seed: int, noiseless: bool) -> None:
        from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

        self._folder = tempfile.TemporaryDirectory()
        known = ConfigurationSpace(seed=seed)
        self._choices = {}
        for name, distribution in space.items():
            if isinstance(distribution, CategoricalDistribution):
                self._choices[name] = distribution.choices
                # By index: a choice can be None.
                known.add(Categorical(name, [str(i) for i in range(len(distribution.choices))]))
                continue
            kind = Integer if isinstance(distribution, IntDistribution) else Float
            bounds = (distribution.low, distribution.high)
            known.add(kind(name, bounds, log=distribution.log))
        self._known, self._seed = known, seed
        self._running: dict[int, Any] = {}
        self._asked = 0

    def expect(self, total: int) -> None:
        """Tell SMAC the number of trials, which limits its first points."""
        import smac

        scenario = smac.Scenario(
            self._known,
            deterministic=True,
            n_trials=total,
            seed=self._seed,
            output_directory=self._folder.name,
        )
        self._facade = getattr(smac, self.facade)(
            scenario, lambda config, seed=0: 0.0, logging_level=False, overwrite=True
        )

    def add(self, params: Params, value: float | None) -> None:
        """SMAC is not timed."""
        raise NotImplementedError("SMAC: searches only")

    def ask(self) -> tuple[int, Params]:
        """Return the configuration that SMAC asks for."""
        self._asked += 1
        info = self._facade.ask()
        self._running[self._asked] = info
        params = dict(info.config)
        for name, choices in self._choices.items():
            params[name] = choices[int(params[name])]
        return self._asked, params

    def tell(self, key: int, value: float) -> None:
        """Set the cost of the configuration ``key``."""
        from smac.runhistory.dataclasses import TrialValue

        self._facade.tell(self._running.pop(key), TrialValue(cost=value))


class SmacProcessMethod(SmacMethod):
    """SMAC3 with its Gaussian process and EI, its default for black boxes."""

    facade = "BlackBoxFacade"
