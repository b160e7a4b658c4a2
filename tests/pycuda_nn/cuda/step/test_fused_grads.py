"""The step with the kernel of the data gradient, without a GPU: order, sums, and other choices."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

import pycuda_nn as nn
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import recognise
from pycuda_nn.cuda.step.tilings import TILINGS
from pycuda_nn.network import Network
from pycuda_nn.training.fit_to_data import recipe
from tests.pycuda_nn.cuda.step.recording import DRIVERS, Event, Work, context_of, hazards
from tests.pycuda_nn.cuda.step.test_step_order import Gemms, Graph, touched

ROWS = 200
DEVICE = SimpleNamespace(
    facts=SimpleNamespace(compute_capability=(9, 0), multiprocessors=132, arch="sm_90")
)


class Kernel:
    """Notes its launches; its arguments are those of the slope, and the product's operands."""

    def arguments(self, _: int, __: Any, u: Any, **operands: int) -> tuple[Any, dict[str, int]]:
        return u, operands

    def launch(self, arguments: tuple[Any, dict[str, int]], stream: Any) -> None:
        u, at = arguments
        stream.queue("data_grad", [at["delta"], at["weights"], u.h], [at["below"], u.partial])


class Offering(Gemms):
    """Products of cuBLASLt alone."""

    def __init__(self, work: list[Work]) -> None:
        super().__init__((), work)
        self.known: dict[str, list[bytes]] = {}

    def offer(self, kind: str, algorithms: list[bytes]) -> None:
        self.known[kind] = algorithms


class Step:
    """A step of 20-40-24-40-``classes`` in bf16."""

    def __init__(self, classes: int) -> None:
        def of(name: str) -> Any:
            return importlib.import_module(f"pycuda_nn.cuda.{name}")

        stack: Any = recognise(Network.from_sizes((20, 40, 24, 40, classes)))
        plan = of("step.plan").TrainingPlan(
            stack=stack, recipe=recipe(nn.TrainConfig()), precision=PRECISIONS["bf16"]
        )
        self.work: list[Work] = []
        self.parts: dict[int, int] = {}  # by address of partial sums
        target = of("step.weights").GradientTarget
        context = context_of(
            plan, self.work, self._touched, copies=1, master_kind=1,
            gradient=lambda layer, beta: target(address=(1 << 51) + 4 * layer.weights, beta=beta),
        )  # fmt: skip
        context.buffers.maps = 1 << 60
        context = dataclasses.replace(context, rows=ROWS, batch=ROWS)
        self.partials = context.buffers.partials
        self.gemms = Offering(self.work)
        grads = of("step.fused_grads").FusedGrads(DEVICE, plan)
        grads._made.kernel = lambda place: Kernel()
        self.step = of("step.step").TrainingStep(context, self.gemms, fused=grads)

    def _touched(self, name: str, words: Any) -> tuple[list[int], list[int]]:
        if name == "update":
            self.parts[words[0].partial] = words[0].parts
        return touched(name, words)

    def record(self, place: int) -> list[str]:
        """Use a choice for all layers; return the kernels of three steps."""
        for kind, algorithms in self.gemms.known.items():
            for choice in self.step.products()[kind]:
                choice.use(algorithms[place])
        self.step.forget()
        self.work.clear()
        self.step.replay(3)
        assert not hazards(self.work)
        return [one.name for one in self.work]


@pytest.fixture
def made() -> Iterator[type[Step]]:
    with patch.dict(sys.modules, {name: MagicMock() for name in DRIVERS}):
        step = importlib.import_module("pycuda_nn.cuda.step.step")
        events = SimpleNamespace(Event=Event, event_flags=MagicMock())
        with patch.multiple(step, Graph=Graph, cuda=events):
            yield Step


@pytest.mark.parametrize(("classes", "layers"), [(3, 2), (40, 3)])  # with the last layer, or not
def test_the_update_sums_as_many_rows_as_the_kernel_writes(
    made: type[Step], classes: int, layers: int
) -> None:
    step = made(classes)
    separate = step.record(0)
    apart = dict(step.parts)
    assert separate.count("activation_grad") == 3 * (layers + (classes == 40))  # and the last delta
    assert "data_grad" not in separate
    for place in range(1, len(TILINGS) + 1):
        names = step.record(place)
        assert names.count("data_grad") == 3 * layers
        assert names.count("activation_grad") == 3 * (classes == 40)
        below = step.partials[:layers]
        assert [step.parts[at] for at in below] == [-(-ROWS // 64)] * layers
        assert {at: n for at, n in step.parts.items() if at not in below}.items() <= apart.items()
    assert step.record(0) == separate
    assert step.parts == apart
