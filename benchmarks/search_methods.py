"""Methods of the search benchmark, with the same three calls: add, ask and tell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial
from search_peers import BoTorchMethod, SmacMethod, SmacProcessMethod
from search_problems import Params

from spearmint import __version__
from spearmint.choosers import Chooser, GPEIOptChooser, SequentialChooser

Space = Mapping[str, BaseDistribution]


class Method(Protocol):
    """A search that proposes points and receives their values."""

    def expect(self, total: int) -> None:
        """Tell the method the number of trials of the search."""

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

    def expect(self, total: int) -> None:
        """Tell a chooser of spearmint when the search ends, as its command does."""
        if isinstance(self._study.sampler, Chooser):
            self._study.sampler.total = total

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


METHODS: dict[str, Callable[[Space, int, bool], Method]] = {
    "GPEIOptChooser": lambda space, seed, noiseless: OptunaMethod(
        GPEIOptChooser(seed=seed, noiseless=noiseless), space
    ),
    # Told that the problem has no noise, also where no other method is told.
    "GPEIOptChooser-exact": lambda space, seed, noiseless: OptunaMethod(
        GPEIOptChooser(seed=seed, noiseless=True), space
    ),
    # As before it looked elsewhere after convergence.
    "GPEIOptChooser-one-basin": lambda space, seed, noiseless: OptunaMethod(
        GPEIOptChooser(seed=seed, noiseless=noiseless, elsewhere=False), space
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
    "CMA": lambda space, seed, noiseless: OptunaMethod(
        CmaEsSampler(seed=seed, warn_independent_sampling=False), space
    ),
    "BoTorch": BoTorchMethod,
    "SMAC": SmacMethod,
    "SMAC-GP": SmacProcessMethod,
    "random": lambda space, seed, noiseless: OptunaMethod(RandomSampler(seed=seed), space),
}
OURS = (
    "GPEIOptChooser",
    "GPEIOptChooser-exact",
    "GPEIOptChooser-one-basin",
    "SequentialChooser",
)
_LIBRARIES = {"BoTorch": "botorch", "SMAC": "smac", "SMAC-GP": "smac"}  # all other methods: optuna


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
    for folder in ("acquisition", "choosers", "gp"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
