"""The operations of a training step in numpy: the twin of every kernel, at most ten lines each.

All work in place on buffers that the caller made; the type of the buffers (float32, or float64 in
tests) is the type of the arithmetic. ``m`` rows, ``k`` outputs, ``h`` width of a layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.protocols import AdamHyper, SgdHyper

Array = npt.NDArray[Any]


def gather(x: Array, rows: Array, out: Array) -> None:
    """Copy ``x[rows]`` to ``out``; the rows are known to be in range."""
    np.take(x, rows, axis=0, out=out, mode="clip")


def bias_relu(z: Array, bias: Array) -> None:
    """Turn z (m, h) into max(z + bias, 0)."""
    np.add(z, bias, out=z)
    np.maximum(z, 0.0, out=z)


def bias_tanh(z: Array, bias: Array) -> None:
    """Turn z (m, h) into tanh(z + bias)."""
    np.add(z, bias, out=z)
    np.tanh(z, out=z)


def bias_sigmoid(z: Array, bias: Array) -> None:
    """Turn z (m, h) into 1 / (1 + exp(-z - bias)), by tanh(z / 2): it cannot overflow."""
    np.add(z, bias, out=z)
    z *= 0.5
    np.tanh(z, out=z)
    z += 1.0
    z *= 0.5


def relu_grad(delta: Array, a: Array, tmp: Array, mask: Array) -> None:
    """Multiply ``delta`` by relu'(z), given a = relu(z)."""
    np.greater(a, 0.0, out=mask)
    np.multiply(delta, mask, out=delta)


def tanh_grad(delta: Array, a: Array, tmp: Array, mask: Array) -> None:
    """Multiply ``delta`` by tanh'(z) = 1 - a**2, given a = tanh(z)."""
    np.multiply(a, a, out=tmp)
    np.subtract(1.0, tmp, out=tmp)
    np.multiply(delta, tmp, out=delta)


def sigmoid_grad(delta: Array, a: Array, tmp: Array, mask: Array) -> None:
    """Multiply ``delta`` by sigmoid'(z) = a (1 - a), given a = sigmoid(z)."""
    np.subtract(1.0, a, out=tmp)
    np.multiply(tmp, a, out=tmp)
    np.multiply(delta, tmp, out=delta)


def keep_mask(bits: Array, threshold: int, scale: float, mask: Array, factor: Array) -> None:
    """Fill ``factor`` (m, h) with ``scale`` where an element is kept and 0 where dropped."""
    np.greater_equal(bits.reshape(mask.shape), threshold, out=mask)
    np.multiply(mask, factor.dtype.type(scale), out=factor)


def softmax_xent(z: Array, labels: Array, starts: Array, place: Array, row: Array) -> float:
    """Turn logits z (m, k) into the gradient of the mean cross-entropy; return that mean.

    Args:
        z: Logits in, (softmax(z) - onehot(labels)) / m out.
        labels: Class numbers, shape (m,).
        starts: 0, k, 2k, ..., where each row of z starts, shape (m,).
        place, row: Work space, shapes (m,) and (m, 1).
    """
    np.add(labels, starts, out=place)
    np.subtract(z, np.maximum.reduce(z, axis=1, keepdims=True, out=row), out=z)
    picked = np.add.reduce(z.ravel().take(place))
    np.exp(z, out=z)
    np.add.reduce(z, axis=1, keepdims=True, out=row)
    total = np.add.reduce(np.log(row), axis=None) - picked  # of terms of one sign
    np.divide(z, np.multiply(row, len(z), out=row), out=z)
    z.ravel()[place] -= 1.0 / len(z)
    return float(total) / len(z)


def logistic_xent(z: Array, labels: Array, tmp: Array) -> float:
    """Turn logits z (m, 1) into the gradient of the mean binary cross-entropy; return that mean.

    Loss of a row: max(z, 0) - z y + log(1 + exp(-|z|)), which cannot overflow; the first two are
    max(-z, 0) where y is 1: no sum is then the difference of two larger ones.
    """
    y = labels.reshape(z.shape)
    np.abs(z, out=tmp)
    wrong = np.maximum(np.where(y == 1, -z, z), 0.0)
    total = np.log1p(np.exp(-tmp)).sum() + wrong.sum()
    bias_sigmoid(z, np.zeros(1, z.dtype))
    np.subtract(z, y, out=z)
    z /= len(z)
    return float(total) / len(z)


def squared_error(z: Array, targets: Array, tmp: Array) -> float:
    """Turn outputs z (m, k) into the gradient of the mean of 1/2 sum_k (z - y)**2; return it."""
    np.subtract(z, targets, out=z)
    loss = 0.5 * float(np.vdot(z, z)) / len(z)
    z /= len(z)
    return loss


def add_l2(grad: Array, weight: Array, l2: float, tmp: Array) -> None:
    """Add the gradient of l2 / 2 * sum(weight**2) to ``grad``; biases are not passed in."""
    np.multiply(weight, l2, out=tmp)
    np.add(grad, tmp, out=grad)


def sgd_step(
    param: Array, grad: Array, velocity: Array, hyper: SgdHyper, lr: float, tmp: Array
) -> None:
    """Update ``param`` and ``velocity``: v = mu v + g; p -= lr v, or lr (g + mu v) by Nesterov.

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


BIAS_ACTIVATION = {"relu": bias_relu, "tanh": bias_tanh, "sigmoid": bias_sigmoid}
ACTIVATION_GRAD = {"relu": relu_grad, "tanh": tanh_grad, "sigmoid": sigmoid_grad}
