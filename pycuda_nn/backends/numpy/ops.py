"""The operations of a training step except for its layers, in numpy, in at most ten lines each.

All of them work in place on buffers of the caller. The type of the buffers (float32, or float64 in
tests) is the type of the arithmetic. ``pycuda_nn/cuda/training`` has the corresponding kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.protocols import AdamHyper, SgdHyper

Array = npt.NDArray[Any]


def gather(x: Array, rows: Array, out: Array) -> None:
    """Copy ``x[rows]`` to ``out``; the rows must be in range."""
    np.take(x, rows, axis=0, out=out, mode="clip")


def add_l2(grad: Array, weight: Array, l2: float, tmp: Array) -> None:
    """Add the gradient of l2 / 2 * sum(weight**2) to ``grad``; do not pass biases."""
    np.multiply(weight, l2, out=tmp)
    np.add(grad, tmp, out=grad)


def sgd_step(
    param: Array, grad: Array, velocity: Array, hyper: SgdHyper, lr: float, tmp: Array
) -> None:
    """Update ``param`` and ``velocity``: v = mu v + g; p -= lr v, or Nesterov's lr (g + mu v).

    Source: Goyal et al. 2017 (arXiv:1706.02677), eq. 9; Sutskever et al. 2013 (ICML), eqs. 3-4 in
    the same variables.
    """
    np.multiply(velocity, hyper.momentum, out=velocity)
    np.add(velocity, grad, out=velocity)
    np.multiply(velocity, lr * hyper.momentum if hyper.nesterov else lr, out=tmp)
    np.subtract(param, tmp, out=param)
    if hyper.nesterov:
        np.multiply(grad, lr, out=tmp)
        np.subtract(param, tmp, out=param)


def adam_step(
    param: Array, grad: Array, m: Array, v: Array, hyper: AdamHyper, lr: float, t: int, tmp: Array
) -> None:
    """Update ``param``, ``m`` and ``v`` with step ``t`` (from 1); overwrites ``grad``.

    Source: Kingma and Ba 2015 (arXiv:1412.6980), algorithm 1 in the form of the end of section 2.
    """
    lr_t, b1, b2, eps = hyper.scalars(lr, t)
    np.multiply(m, b1, out=m)
    np.add(m, np.multiply(grad, 1 - b1, out=tmp), out=m)
    np.multiply(v, b2, out=v)
    np.multiply(grad, grad, out=grad)
    np.add(v, np.multiply(grad, 1 - b2, out=tmp), out=v)
    np.add(np.sqrt(v, out=tmp), eps, out=tmp)
    np.divide(m, tmp, out=tmp)
    np.subtract(param, np.multiply(tmp, lr_t, out=tmp), out=param)
