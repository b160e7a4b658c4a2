from __future__ import annotations

import numpy as np
import pytest

import pycuda_nn as nn


def blobs(n: int = 240, d: int = 5, classes: int = 3, seed: int = 0) -> nn.Dataset:
    """Return rows around ``classes`` distant centres: a network learns them in a few epochs."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    centres = rng.normal(size=(classes, d)) * 3
    x = centres[y] + rng.normal(size=(n, d))
    return nn.Dataset.from_arrays(x, y, name="blobs")


@pytest.fixture
def data() -> nn.Dataset:
    return blobs()


@pytest.fixture
def parts(data: nn.Dataset) -> tuple[nn.Dataset, nn.Dataset, nn.Dataset]:
    return nn.split(data, seed=1)
