"""The numpy backend: exact, on any machine, the reference for all others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy import blas, ops
from pycuda_nn.backends.numpy.buffers import Buffers, aligned_zeros, blocks
from pycuda_nn.backends.numpy.evaluation import Evaluator
from pycuda_nn.errors import CheckpointError
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, Backend, Metrics, Session, Split, State, TrainingRecipe
from pycuda_nn.rng import EpochOrder, Purpose, Stream, drop_bits, drop_threshold, keep_scale

Array = npt.NDArray[Any]

_SMALL_PRODUCT = 4_000_000  # multiply-adds; about 0.1 ms on one core: less is not worth a thread


class NumpyBackend(Backend):
    """Trains on the CPU with numpy's BLAS."""

    name = "numpy"

    def __init__(self, dtype: type[np.floating[Any]] = np.float32) -> None:
        """Compute in ``dtype``; float64 is for tests of the gradients."""
        self._dtype = dtype

    @classmethod
    def missing(cls) -> str | None:
        """Nothing is: numpy is always there."""
        return None

    def open(
        self, network: Network, recipe: TrainingRecipe, parts: Mapping[str, Split], params: Array
    ) -> Session:
        """Return a session that keeps ``parts`` as they are, mapped files too."""
        return NumpySession(network, recipe, parts, params, self._dtype)


class NumpySession(Session):
    """One training with all buffers made beforehand."""

    def __init__(
        self,
        network: Network,
        recipe: TrainingRecipe,
        parts: Mapping[str, Split],
        params: Array,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> None:
        self.network = network
        self.recipe = recipe
        self._parts = {name: _as(part, dtype) for name, part in parts.items()}
        self._params = aligned_zeros(network.n_params, dtype)
        self._params[:] = params
        self._grad = aligned_zeros(network.n_params, dtype)
        names = ("m", "v") if isinstance(recipe.optimizer, AdamHyper) else ("velocity",)
        self._moments = {name: aligned_zeros(network.n_params, dtype) for name in names}
        self._weights = network.views(self._params)
        self._grads = network.views(self._grad)
        self._step = 0
        self._drop = Stream(recipe.seed, Purpose.DROPOUT)
        self._buffers: dict[int, Buffers] = {}
        self._blocks = list(blocks(network, self._params, self._grad, *self._moments.values()))
        self._evaluator = Evaluator(network, dtype)
        largest = recipe.batch_size * max(i * o for i, o in network.layers)
        self._threads: Callable[[], contextlib.AbstractContextManager[object]]
        self._threads = blas.one_thread if largest < _SMALL_PRODUCT else contextlib.nullcontext

    def run_epoch(
        self, order: Array | EpochOrder, learning_rates: Array
    ) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        size, order = self.recipe.batch_size, np.asarray(order)
        losses = np.empty(len(learning_rates), dtype=np.float32)
        with np.errstate(all="ignore"), self._threads():
            for i, lr in enumerate(learning_rates.tolist()):
                losses[i] = self.gradient(order[i * size : (i + 1) * size])
                self._update(lr)
                self._step += 1
        return losses

    def gradient(self, rows: Array) -> float:
        """Fill the gradient of ``rows`` without the L2 term; return their mean loss."""
        buffers = self._buffers_of(len(rows))
        part = self._parts["train"]
        ops.gather(part.x, rows, buffers.x)
        ops.gather(part.y, rows, buffers.y)
        self._forward(buffers)
        loss = buffers.loss(buffers.outputs[-1], buffers.y)
        self._backward(buffers)
        return loss

    def grad(self) -> Array:
        """Return a copy of the gradient that :meth:`gradient` filled."""
        return self._grad.copy()

    def evaluate(self, part: str) -> Metrics:
        """See :class:`Session`."""
        rows = self._parts[part]
        with self._threads():
            return self._evaluator.metrics(self._weights, rows.x, rows.y)

    def params(self) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        return self._params.astype(np.float32)

    def state(self) -> State:
        """See :class:`Session`."""
        moments = {name: buffer.astype(np.float32) for name, buffer in self._moments.items()}
        return {"params": self.params(), "step": np.array(self._step, dtype=np.int64), **moments}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """See :class:`Session`."""
        for name, buffer in {"params": self._params, **self._moments}.items():
            if name not in state or state[name].shape != buffer.shape:
                raise CheckpointError(f"the state does not fit this network: {name}")
            buffer[:] = state[name]
        self._step = int(state["step"])

    def _buffers_of(self, rows: int) -> Buffers:
        if rows not in self._buffers:
            y = self._parts["train"].y
            dropout = self.recipe.dropout > 0
            self._buffers[rows] = Buffers(self.network, rows, y, self._grad.dtype, dropout)
        return self._buffers[rows]

    def _forward(self, buffers: Buffers) -> None:
        activate = ops.BIAS_ACTIVATION[self.network.activation]
        a, last = buffers.x, len(self._weights) - 1
        for layer, ((weight, bias), z) in enumerate(
            zip(self._weights, buffers.outputs, strict=True)
        ):
            np.matmul(a, weight, out=z)
            if layer == last:
                np.add(z, bias, out=z)
                return
            activate(z, bias)
            a = self._dropped(buffers, layer, z) if self.recipe.dropout > 0 else z

    def _dropped(self, buffers: Buffers, layer: int, a: Array) -> Array:
        bits = drop_bits(self._drop, self._step, layer, a.size)
        factor, out = buffers.factors[layer], buffers.dropped[layer]
        threshold, scale = drop_threshold(self.recipe.dropout), keep_scale(self.recipe.dropout)
        ops.keep_mask(bits, threshold, scale, buffers.masks[layer], factor)
        np.multiply(a, factor, out=out)
        return out

    def _backward(self, buffers: Buffers) -> None:
        activation_grad = ops.ACTIVATION_GRAD[self.network.activation]
        dropout = self.recipe.dropout > 0
        inputs = buffers.dropped if dropout else buffers.outputs
        delta = buffers.outputs[-1]
        for layer in range(len(self._weights) - 1, -1, -1):
            grad_weight, grad_bias = self._grads[layer]
            np.matmul((inputs[layer - 1] if layer else buffers.x).T, delta, out=grad_weight)
            np.matmul(buffers.ones, delta, out=grad_bias)
            if not layer:
                return
            below = buffers.deltas[layer - 1]
            np.matmul(delta, self._weights[layer][0].T, out=below)
            if dropout:
                np.multiply(below, buffers.factors[layer - 1], out=below)
            a, mask = buffers.outputs[layer - 1], buffers.masks[layer - 1]
            activation_grad(below, a, buffers.tmp[layer - 1], mask)
            delta = below

    def _update(self, lr: float) -> None:
        hyper, l2 = self.recipe.optimizer, self.recipe.l2
        for is_weight, tmp, param, grad, *moments in self._blocks:
            if l2 and is_weight:
                ops.add_l2(grad, param, l2, tmp)
            if isinstance(hyper, AdamHyper):
                ops.adam_step(param, grad, moments[0], moments[1], hyper, lr, self._step + 1, tmp)
            else:
                ops.sgd_step(param, grad, moments[0], hyper, lr, tmp)


def _as(part: Split, dtype: type[np.floating[Any]]) -> Split:
    """Return ``part`` itself unless the arithmetic is not float32."""
    if dtype is np.float32:
        return part
    y = part.y.astype(dtype) if part.y.dtype.kind == "f" else part.y
    return Split(x=part.x.astype(dtype), y=y)
