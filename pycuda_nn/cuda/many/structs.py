"""Structs of many.cuh, with the same fields."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.runtime.structs import Activation, Update
from pycuda_nn.cuda.step.weights import hyper_scalars
from pycuda_nn.layers import Dropout
from pycuda_nn.protocols import TrainingRecipe

_FLOATS = ("momentum", "beta2", "eps", "l2", "scale")
NET = np.dtype(
    [("seed", np.uint64), *((name, np.float32) for name in _FLOATS), ("threshold", np.uint32)]
)


class ManyActivation(ctypes.Structure):
    """Arguments of the kernels of an activation."""

    _fields_ = (("u", Activation), ("nets", ctypes.c_uint64))


class ManyUpdate(ctypes.Structure):
    """Arguments of the kernel of an update."""

    _fields_ = (("u", Update), ("nets", ctypes.c_uint64), ("steps", ctypes.c_int))


def nets(recipes: Sequence[TrainingRecipe], dropouts: Sequence[Dropout]) -> npt.NDArray[Any]:
    """Return the settings of each network for the kernels."""
    out = np.zeros(len(recipes), dtype=NET)
    for row, recipe, dropout in zip(out, recipes, dropouts, strict=True):
        for name, value in hyper_scalars(recipe).items():
            row[name] = value
        row["seed"], row["threshold"], row["scale"] = recipe.seed, dropout.threshold, dropout.scale
    return out
