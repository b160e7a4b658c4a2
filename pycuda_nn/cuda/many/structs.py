"""Structs of many.cuh, with the same fields."""

from __future__ import annotations

import ctypes

import numpy as np

from pycuda_nn.cuda.runtime.structs import MOST_BIASES, Activation, Tiny, Update

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


class Operands(ctypes.Structure):
    """Operands of a product of each network."""

    _fields_ = (
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
        ("m", ctypes.c_int),
        ("n", ctypes.c_int),
        ("k", ctypes.c_int),
    )


class ManyProduct(ctypes.Structure):
    """Arguments of the product of a hidden layer, with its activation or the slope of that."""

    _fields_ = (("p", Operands), ("u", Activation), ("nets", ctypes.c_uint64))


class ManyWeights(ctypes.Structure):
    """Arguments of the product of a gradient of weights, with their update."""

    _fields_ = (("p", Operands), ("u", Update), ("nets", ctypes.c_uint64), ("steps", ctypes.c_int))


class ManyBiases(ctypes.Structure):
    """Arguments of the update of the biases of some layers."""

    _fields_ = (
        ("u", Update * MOST_BIASES),
        ("end", ctypes.c_int * MOST_BIASES),
        ("nets", ctypes.c_uint64),
        ("steps", ctypes.c_int),
    )


class ManyTiny(ctypes.Structure):
    """Arguments of the tiny kernel."""

    _fields_ = (
        ("u", Tiny),
        ("nets", ctypes.c_uint64),
        ("members", ctypes.c_uint64),
        ("slots", ctypes.c_int),
        ("steps", ctypes.c_int),
    )


class ManyColumns(ctypes.Structure):
    """Arguments of the column kernel."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("x", "y", "order", "rates", "losses", "clock")),
        *((name, ctypes.c_uint64) for name in ("weight", "master", "first", "second")),
        *((name, ctypes.c_uint64) for name in ("nets", "members", "purpose")),
        *((name, ctypes.c_int) for name in ("networks", "slots", "steps", "first_step", "n_steps")),
    )
