"""Methods of the search benchmark, with the same three calls: add, ask and tell."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial
from search_problems import Params

from spearmint import __version__
from spearmint.choosers import GPEIOptChooser, SequentialChooser

Space = Mapping[str, BaseDistribution]


class Method(Protocol):
    """A search that proposes points and receives their values."""

    def add(self, params: Params, value: float | None) -> None:
        """Add a point that the method did not propose; it is running if ``value`` is None."""

    def ask(self) -> tuple[int, Params]:
        """Return the next point and its key."""

    def tell(self, key: int, value: float) -> None:
        """Set the value of the point ``key``."""


class OptunaMethod:
    """An Optuna sampler, or a chooser of spearmint, with a study in memory."""

    def __init__(self, sampler: BaseSampler, space: Space) -> None:
        self._space = dict(space)
        self._study = optuna.create_study(sampler=sampler)

    def add(self, params: Params, value: float | None) -> None:
        """Add a point that the sampler did not propose; it is running if ``value`` is None."""
        state = TrialState.RUNNING if value is None else TrialState.COMPLETE
        self._study.add_trial(
            create_trial(state=state, params=params, distributions=self._space, value=value)
        )

    def ask(self) -> tuple[int, Params]:
        """Return the next point and its number."""
        trial = self._study.ask(self._space)
        return trial.number, trial.params

    def tell(self, key: int, value: float) -> None:
        """Set the value of the trial ``key``."""
        self._study.tell(key, value)


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


METHODS: dict[str, Callable[[Space, int, bool], Method]] = {
    "GPEIOptChooser": lambda space, seed, noiseless: OptunaMethod(
        GPEIOptChooser(seed=seed, noiseless=noiseless), space
    ),
    "SequentialChooser": lambda space, seed, noiseless: OptunaMethod(
        SequentialChooser(seed=seed), space
    ),
    "GPSampler": lambda space, seed, noiseless: OptunaMethod(
        GPSampler(seed=seed, deterministic_objective=noiseless), space
    ),
    "TPESampler": lambda space, seed, noiseless: OptunaMethod(
        TPESampler(seed=seed, constant_liar=True), space
    ),
    "BoTorch": BoTorchMethod,
    "random": lambda space, seed, noiseless: OptunaMethod(RandomSampler(seed=seed), space),
}
OURS = ("GPEIOptChooser", "SequentialChooser")
_LIBRARIES = {"BoTorch": "botorch"}  # all other methods: optuna


def version_of(method: str) -> str | None:
    """Return the version that a record of ``method`` depends on; None without its library.

    For spearmint's choosers, it is the package's version and a digest of their source code.
    """
    if method in OURS:
        return f"spearmint {__version__} {_digest()}"
    library = _LIBRARIES.get(method, "optuna")
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return None


def _digest() -> str:
    spec = find_spec("spearmint")
    root = Path(spec.origin).parent
    digest = hashlib.sha256()
    for folder in ("choosers", "gp"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
