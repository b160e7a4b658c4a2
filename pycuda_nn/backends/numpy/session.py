"""The numpy backend: works on any machine and is the reference for all other backends."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy import blas, ops
from pycuda_nn.backends.numpy.buffers import Buffers, blocks
from pycuda_nn.backends.numpy.evaluation import Evaluator
from pycuda_nn.errors import CheckpointError
from pycuda_nn.layers.base import Bits
from pycuda_nn.layers.memory import aligned_zeros
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, Backend, Metrics, Session, Split, State, TrainingRecipe
from pycuda_nn.rng import EpochOrder, Purpose, Stream, drop_bits

Array = npt.NDArray[Any]

_LOG = logging.getLogger("pycuda_nn")
_SMALL_PRODUCT = 4_000_000  # multiply-adds, about 0.1 ms on one core: too few for a thread


class NumpyBackend(Backend):
    """Trains on the CPU with numpy's BLAS."""

    name = "numpy"

    def __init__(self, dtype: type[np.floating[Any]] = np.float32) -> None:
        """Compute in ``dtype``; float64 is for tests of the gradients."""
        self._dtype = dtype

    @classmethod
    def missing(cls) -> str | None:
        """Return None: numpy is always installed."""
        return None

    def open(
        self, network: Network, recipe: TrainingRecipe, parts: Mapping[str, Split], params: Array
    ) -> Session:
        """Return a session that uses ``parts`` without a copy, also memory-mapped files."""
        return NumpySession(network, recipe, parts, params, self._dtype)


class NumpySession(Session):
    """One training; all buffers are allocated at the start."""

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
        self._weights = network.views_by_layer(self._params)
        self._grads = network.views_by_layer(self._grad)
        self._first = next(n for n, params in enumerate(self._weights) if params)
        self._bits = self._bits_of()
        self._step = 0
        self._drop = Stream(recipe.seed, Purpose.DROPOUT)
        self._buffers: dict[int, Buffers] = {}
        self._blocks = list(blocks(network, self._params, self._grad, *self._moments.values()))
        self._evaluator = Evaluator(network, dtype)
        _LOG.info(
            "training path: numpy, layer by layer (%d layers, %s of %d outputs, minibatch %d)",
            len(network.layers), network.loss.name, network.outputs, recipe.batch_size,
        )  # fmt: skip
        largest = recipe.batch_size * max(parameter.size for parameter in network.parameters)
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
        delta = buffers.outputs(self._forward(buffers))
        loss = self.network.loss.gradient(delta, buffers.y, buffers.loss)
        self._backward(buffers, delta)
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
                raise CheckpointError(f"state '{name}' does not fit this network")
            buffer[:] = state[name]
        self._step = int(state["step"])

    def _buffers_of(self, rows: int) -> Buffers:
        if rows not in self._buffers:
            y = self._parts["train"].y
            self._buffers[rows] = Buffers(self.network, rows, y, self._grad.dtype)
        return self._buffers[rows]

    def _bits_of(self) -> list[Bits]:
        """Return the functions that draw the bits of each layer.

        The k-th layer that draws bits has place k.
        """
        places = itertools.count()
        return [
            functools.partial(self._draw, next(places)) if layer.draws else _no_bits
            for layer in self.network.layers
        ]

    def _draw(self, place: int, n: int) -> npt.NDArray[np.uint16]:
        return drop_bits(self._drop, self._step, place, n)

    def _forward(self, buffers: Buffers) -> Array:
        a = buffers.x
        for layer, params, memory, bits in zip(
            self.network.layers, self._weights, buffers.layers, self._bits, strict=True
        ):
            a = layer.forward(a, params, memory, bits)
        return a

    def _backward(self, buffers: Buffers, delta: Array) -> None:
        layers = self.network.layers
        for number in range(len(layers) - 1, self._first - 1, -1):
            delta = layers[number].backward(
                delta,
                self._weights[number],
                self._grads[number],
                buffers.layers[number],
                needed=number > self._first,
            )

    def _update(self, lr: float) -> None:
        hyper, l2 = self.recipe.optimizer, self.recipe.l2
        for is_weight, tmp, param, grad, *moments in self._blocks:
            if l2 and is_weight:
                ops.add_l2(grad, param, l2, tmp)
            if isinstance(hyper, AdamHyper):
                ops.adam_step(param, grad, moments[0], moments[1], hyper, lr, self._step + 1, tmp)
            else:
                ops.sgd_step(param, grad, moments[0], hyper, lr, tmp)


def _no_bits(n: int) -> npt.NDArray[np.uint16]:
    """Raise: the layer declares that it draws no bits."""
    raise TypeError("a layer that uses random bits must set draws = True")


def _as(part: Split, dtype: type[np.floating[Any]]) -> Split:
    """Return ``part`` in ``dtype``; for float32 it is ``part`` itself."""
    if dtype is np.float32:
        return part
    y = part.y.astype(dtype) if part.y.dtype.kind == "f" else part.y
    return Split(x=part.x.astype(dtype), y=y)
