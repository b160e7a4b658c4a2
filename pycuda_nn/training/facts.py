"""Values that depend only on the rows, computed once for all trainings on them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.dataset import Dataset
from pycuda_nn.data.scaling import Scaler, TargetScaler, scaled
from pycuda_nn.errors import DataError
from pycuda_nn.network import Network
from pycuda_nn.protocols import Split
from pycuda_nn.training.checkpoint import Checkpoint, fingerprint

Parts = dict[str, Split]


def _require_dataset(what: str, given: object) -> None:
    if not isinstance(given, Dataset):
        raise DataError(
            f"{what} is of type {type(given).__name__}, not Dataset",
            "Make one of arrays: nn.Dataset.from_arrays(x, y).",
        )


class DataFacts:
    """The rows of one or many trainings, which must not change as long as this is used.

    Attributes:
        train, valid: The rows; no validation rows are None.
        scaler: Returns the scaler of a kind for the training rows.
    """

    def __init__(self, train: Dataset, valid: Dataset | None) -> None:
        """Raise DataError if they are not datasets."""
        _require_dataset("train", train)
        if valid is not None:
            _require_dataset("valid", valid)
        self.train = train
        self.valid = valid if valid is not None and len(valid) else None
        self.scaler: Callable[[str], Scaler | None] = functools.cache(
            functools.partial(Scaler.fit, train.x)
        )
        self._initial = functools.lru_cache(maxsize=1)(Network.initial_params)
        self._last: tuple[tuple[object, object], Parts] | None = None

    @functools.cached_property
    def fingerprints(self) -> tuple[str, str]:
        """Hashes of training and validation rows, "" without the latter."""
        return fingerprint(self.train), "" if self.valid is None else fingerprint(self.valid)

    @functools.cached_property
    def targets(self) -> TargetScaler:
        """The scaler of the training targets, which must be numbers."""
        return TargetScaler.fit(self.train.y)

    def initial_params(self, network: Network, seed: int) -> npt.NDArray[np.float32]:
        """Return the initial parameters of a network whose layers are hashable.

        The last answer is kept: the trials of a search often have the same seed.
        """
        return self._initial(network, seed).copy()

    def parts(self, begin: Checkpoint) -> Parts:
        """Return the rows as ``begin`` scales them; the last answer is kept."""
        key = (begin.scaler, begin.targets)
        if self._last is None or self._last[0] != key:
            made = {"train": _split(self.train, begin)}
            if self.valid is not None:
                made["valid"] = _split(self.valid, begin)
            self._last = (key, made)
        return self._last[1]


def _split(data: Dataset, begin: Checkpoint) -> Split:
    y = data.y if begin.targets is None else begin.targets.apply(data.y)
    return Split(x=scaled(data.x, begin.scaler), y=y)
