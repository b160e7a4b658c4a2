"""Compare whole epochs with a second, simple trainer, written from the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.backends.testing import ADAM, NESTEROV, SGD
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import Purpose, Stream, drop_bits, epoch_order

SIZES, SEED, BATCH, DROPOUT, L2 = (4, 7, 5, 3), 3, 8, 0.25, 0.01
B1, B2 = float(np.float32(0.9)), float(np.float32(0.999))  # kernels use float32


def plain_epochs(
    x: np.ndarray, y: np.ndarray, hyper: AdamHyper | SgdHyper, params: np.ndarray, epochs: int
) -> list[float]:
    """Train with relu, softmax, dropout and L2; each step follows the papers."""
    network = Network.from_sizes(sizes=SIZES, activation="relu", loss="softmax")
    flat = params.astype(np.float64)
    weights = network.views(flat)
    v1, v2 = np.zeros(flat.size), np.zeros(flat.size)
    stream, losses, step = Stream(SEED, Purpose.DROPOUT), [], 0
    for epoch in range(epochs):
        order = epoch_order(len(x), SEED, epoch)
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            acts, masks = [x[rows]], []
            for layer, (w, b) in enumerate(weights[:-1]):
                a = np.maximum(acts[-1] @ w + b, 0)
                kept = drop_bits(stream, step, layer, a.size).reshape(a.shape) >= DROPOUT * 65536
                masks.append(kept / (1 - DROPOUT) * (a > 0))
                acts.append(a * kept / (1 - DROPOUT))
            z = acts[-1] @ weights[-1][0] + weights[-1][1]
            p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
            losses.append(-np.log(p[np.arange(len(rows)), y[rows]]).mean())
            delta = (p - np.eye(3)[y[rows]]) / len(rows)
            grad = np.zeros(flat.size)
            for layer in (2, 1, 0):
                gw, gb = network.views(grad)[layer]
                gw[...] = acts[layer].T @ delta + L2 * weights[layer][0]
                gb[...] = delta.sum(axis=0)
                if layer:
                    delta = delta @ weights[layer][0].T * masks[layer - 1]
            step += 1
            rate = 0.02 / step
            if isinstance(hyper, AdamHyper):
                v1 = B1 * v1 + (1 - B1) * grad
                v2 = B2 * v2 + (1 - B2) * grad**2
                rate *= np.sqrt(1 - B2**step) / (1 - B1**step)
                flat -= rate * v1 / (np.sqrt(v2) + 1e-8)
            else:
                v1 = 0.9 * v1 + grad
                flat -= rate * (grad + 0.9 * v1 if hyper.nesterov else v1)
    return losses


@pytest.mark.parametrize("hyper", [SGD, NESTEROV, ADAM])
def test_losses_of_two_epochs(hyper: AdamHyper | SgdHyper) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(27, 4)).astype(np.float32), rng.integers(0, 3, 27).astype(np.int32)
    network = Network.from_sizes(SIZES, activation="relu", loss="softmax", dropout=DROPOUT)
    params = network.initial_params(1)
    params[network.n_weights :] = 0.1
    recipe = TrainingRecipe(optimizer=hyper, batch_size=BATCH, l2=L2, seed=SEED)
    want = plain_epochs(x, y, hyper, params, 2)
    for dtype, rtol in ((np.float64, 1e-5), (np.float32, 1e-4)):
        session = NumpyBackend(dtype).open(network, recipe, {"train": Split(x=x, y=y)}, params)
        got = [
            loss
            for epoch in range(2)
            for loss in session.run_epoch(
                epoch_order(27, SEED, epoch), 0.02 / np.arange(1 + 4 * epoch, 5 + 4 * epoch)
            )
        ]
        np.testing.assert_allclose(got, want, rtol=rtol)
