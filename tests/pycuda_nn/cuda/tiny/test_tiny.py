"""The tiny kernel, emulated on the CPU, trains like numpy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.backends.testing import ADAM, FOCAL, HUBER, NESTEROV, SGD
from tests.pycuda_nn.cuda.tiny.emulation import Case, Emulation, factors

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")

CASES = {
    "adam-squared": Case(sizes=(6, 9, 2), batch=16, optimizer=ADAM, loss="squared", l2=1e-2),
    "sgd-softmax-tanh": Case(
        sizes=(5, 8, 7, 3), batch=7, optimizer=SGD, activation="tanh", dropout=0.25, l2=1e-2
    ),
    "nesterov-logistic": Case(
        sizes=(13, 20, 1), batch=33, optimizer=NESTEROV, loss="logistic", activation="sigmoid"
    ),
    "adam-focal-gelu-dropout": Case(
        sizes=(6, 9, 7, 3), batch=10, optimizer=ADAM, loss=FOCAL, activation="gelu", dropout=0.5
    ),
    "huber-3-blocks": Case(
        sizes=(6, 17, 9, 2), batch=19, optimizer=NESTEROV, loss=HUBER, dropout=0.25, blocks=3
    ),
    "adam-4-blocks": Case(
        sizes=(12, 16, 40), batch=16, optimizer=ADAM, l2=1e-2, blocks=4, dropout=0.25, cluster=True
    ),
    "no-hidden-layer": Case(sizes=(4, 33), batch=1, optimizer=SGD, rows=3),
    "more-blocks-than-rows": Case(
        sizes=(3, 4, 1), batch=5, optimizer=SGD, loss="squared", blocks=4
    ),
    "bf16-rows": Case(sizes=(9, 12, 4), batch=8, optimizer=SGD, precision="bf16"),
}


@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_trains_like_numpy(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    part, params = case.part(), case.network.initial_params(5)
    kernel = Emulation(case, tmp_path)
    exact = NumpyBackend(np.float64).open(case.network, case.recipe, {"train": part}, params)
    state = {k: v for k, v in exact.state().items() if k != "step"}
    rng = np.random.default_rng(2)
    steps = -(-len(part.x) // case.batch)
    rates = np.linspace(0.05, 0.03, steps).astype(np.float32) / (10 if "m" in state else 1)
    for epoch in range(2):
        order = rng.permutation(len(part.x))
        scaled = factors(case, rates, epoch * steps)
        again = {k: v.copy() for k, v in state.items()}
        got = kernel.run(state, order, scaled, step=epoch * steps, seed=epoch)
        split = (1, steps - 1) if steps > 1 else (1,)
        other = kernel.run(again, order, scaled, step=epoch * steps, seed=7, launches=split)
        np.testing.assert_array_equal(got, other)
        want = exact.run_epoch(order, rates)
        np.testing.assert_allclose(got, want, rtol=2e-5)
        for key, value in state.items():
            np.testing.assert_array_equal(again[key], value, key)
            np.testing.assert_allclose(value, exact.state()[key], rtol=1e-3, atol=2e-5)
