"""The tiny kernel of many networks, emulated on the CPU: the same bits as each network alone."""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pycuda_nn.backends.testing import ADAM, SGD
from pycuda_nn.cuda.many.layout import ManyLayout
from pycuda_nn.cuda.many.sources import TINY_ENTRY
from pycuda_nn.cuda.many.structs import NET, ManyTiny
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import find_nvcc
from pycuda_nn.cuda.tiny.kernel import source_of
from pycuda_nn.protocols import AdamHyper, SgdHyper
from pycuda_nn.rng import Purpose
from tests.pycuda_nn.cuda.tiny.emulation import (
    Case,
    Emulation,
    aligned,
    emulated_source,
    factors,
    scalars,
)

NVCC = find_nvcc()
needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
SLOTS, TRAINED, STEP = 64, (2, 0), 3  # network k has trained STEP + k steps before
CASES = {
    "one-block": Case(sizes=(5, 9, 3), batch=8, optimizer=SGD, dropout=0.25, l2=1e-2),
    "cluster": Case(
        sizes=(6, 9, 7, 2), batch=10, optimizer=ADAM, dropout=0.25, blocks=2, cluster=True
    ),
}


def variants(case: Case) -> list[Case]:
    """Return networks whose settings differ."""
    more: list[dict[str, Any]] = [{"optimizer": AdamHyper(beta1=0.8, beta2=0.99, eps=1e-7)}, {}, {}]
    if isinstance(case.optimizer, SgdHyper):
        more[0]["optimizer"] = SgdHyper(momentum=0.5, nesterov=False)
    more[1] |= {"dropout": 0.5, "l2": 0.0}
    more[2] |= {"dropout": 0.5, "l2": 1e-3}
    return [dataclasses.replace(case, **changes) for changes in more]


class Many:
    """The arrays of three networks of a case."""

    def __init__(self, cases: list[Case]) -> None:
        one, self.count = cases[0], len(cases)
        self.layout = ManyLayout(one.network, self.count)
        rng, self.n = np.random.default_rng(4), len(one.part().x)
        self.steps = -(-self.n // one.batch)
        self.orders = np.zeros((self.count, SLOTS), dtype=np.int32)
        for order in self.orders:
            order[: self.n] = rng.permutation(self.n)
        flat = np.linspace(0.05, 0.01, self.count * self.steps, dtype=np.float32)
        rates = flat.reshape(self.count, self.steps)
        self.rates = np.stack(
            [
                factors(case, row, STEP + k)
                for k, (case, row) in enumerate(zip(cases, rates, strict=True))
            ]
        )
        self.states = [self.state_of(case, number) for number, case in enumerate(cases)]
        names = self.states[0]
        self.wide = {
            name: aligned(self.layout.spread([state[name] for state in self.states]))
            for name in names
        }

    @staticmethod
    def state_of(case: Case, number: int) -> dict[str, Any]:
        params = case.network.initial_params(5 + number)
        names = ("m", "v") if isinstance(case.optimizer, AdamHyper) else ("velocity",)
        return {"params": params, **{name: np.zeros_like(params) for name in names}}

    def train(self, cases: list[Case], library: Any) -> np.ndarray:
        """Train :data:`TRAINED` and return the losses of all."""
        rows, one = cases[0].device_arrays(), cases[0]
        losses = np.full(self.rates.shape, np.nan, dtype=np.float32)
        clocks = np.array([[0, STEP + k] for k in range(self.count)], dtype=np.int64)
        settings = np.zeros(self.count, dtype=NET)
        for row, case in zip(settings, cases, strict=True):
            dropout = case.plan.stack.dropout
            values = {**scalars(case.recipe), "seed": case.recipe.seed}
            values |= {"threshold": dropout.threshold, "scale": dropout.scale}
            for name, value in values.items():
                row[name] = value
        members, counter = np.array(TRAINED, dtype=np.int32), np.zeros(1, dtype=np.int32)
        moments = list(self.wide.values())[1:]
        arrays = {
            "x": aligned(rows["x"]), "y": rows["y"], "order": self.orders, "rates": self.rates,
            "losses": losses, "clock": clocks, "params": self.wide["params"],
            "first": moments[0], "second": moments[-1], "counter": counter,
        }  # fmt: skip
        u = structs.Tiny(
            **{name: array.ctypes.data for name, array in arrays.items()},
            purpose=int(Purpose.DROPOUT), n_steps=self.steps, rows=self.n, networks=self.count,
        )  # fmt: skip
        many = ManyTiny(
            u=u, nets=settings.ctypes.data, members=members.ctypes.data, slots=SLOTS,
            steps=self.steps,
        )  # fmt: skip
        assert library.emulate(ctypes.byref(many), 11, len(TRAINED)), f"{one}: deadlock"
        return losses


@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_gives_the_bits_of_each_network_alone(name: str, tmp_path: Path) -> None:
    cases = variants(CASES[name])
    alone = Emulation(cases[0], tmp_path)
    (tmp_path / "many").mkdir()
    library = alone.built(tmp_path / "many", emulated_source(cases[0].plan, TINY_ENTRY, "ManyTiny"))
    assert library.argument_bytes() == ctypes.sizeof(ManyTiny)
    many = Many(cases)
    losses = many.train(cases, library)
    for number, case in enumerate(cases):
        state = {name: value.copy() for name, value in many.states[number].items()}
        if number in TRAINED:
            alone.case = case
            alone.plan = case.plan
            order = many.orders[number, : many.n]
            want = alone.run(state, order, many.rates[number], step=STEP + number)
            np.testing.assert_array_equal(losses[number], want)
        else:
            assert np.isnan(losses[number]).all()
        for key, value in state.items():
            got = many.layout.compact(many.wide[key])[number]
            np.testing.assert_array_equal(got, value, f"{key} of network {number}")


@pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_compiles(name: str) -> None:
    assert NVCC is not None
    plan = CASES[name].plan
    assert NVCC.compile(source_of(plan, TINY_ENTRY), "sm_90", ["-std=c++17", *plan.macros()])
