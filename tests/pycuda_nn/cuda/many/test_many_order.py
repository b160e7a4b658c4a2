"""Kernels of a fused step that touch the same memory run in the order in which they are queued."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

import pycuda_nn as nn
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.training.fit_to_data import recipe
from tests.pycuda_nn.cuda.step.recording import DRIVERS, Event, Work, context_of, hazards


def touched(name: str, words: Any) -> tuple[list[int], list[int]]:
    """Return the addresses that a kernel reads and writes."""
    if name == "gather_many":
        return [words[3]], [words[10], words[11]]
    if name == "tick_many":
        return [], [words[0]]
    if name == "softmax_xent":
        return list(words[:3]), [words[7], words[8]]
    one = words[0]
    if name == "biases_many":
        layers = [u for u, end in zip(one.u, one.end, strict=True) if end]
        read = [a for u in layers for a in (u.partial, u.loss, u.clock)]
        return read, [a for u in layers for a in (u.bias, u.bias_master, u.bias_first)]
    if name == "head_many":
        read = [one.h, one.weight, one.bias, one.y]
        return read, [one.below, one.delta, one.loss, one.partial, one.partial_below]
    u = one.u
    if name == "activation_grad_many":
        return [u.a, u.h], [u.partial]
    if name == "weights_many":
        return [one.p.a, one.p.b, u.clock], [u.weight, u.master, u.first]
    assert name in ("forward_many", "gradient_many")
    return [one.p.a, one.p.b, u.bias, u.h, u.clock], [u.a, u.z, u.partial]


class Gemms:
    def ready(self, product: Any, *_: Any) -> Any:
        return lambda stream: stream.queue("product", [product.a, product.b], [product.d])


@pytest.fixture
def modules() -> Iterator[None]:
    """Replace the drivers of a GPU."""
    with patch.dict(sys.modules, {name: MagicMock() for name in DRIVERS}):
        yield


@pytest.fixture
def step(modules: None) -> Any:
    """Return a function that records three steps of a network and returns their work."""
    return recorded


def recorded(hidden: tuple[int, ...], activation: str) -> list[Work]:
    of = {name: importlib.import_module(f"pycuda_nn.cuda.{name}") for name in (
        "many.plan", "many.fused", "step.step", "runtime.precision",
    )}  # fmt: skip
    config = nn.TrainConfig(hidden=hidden, optimizer="sgd", activation=activation)
    stack = recognise(nn.Network.from_sizes((20, *hidden, 3), activation=activation))
    assert isinstance(stack, DenseStack)
    plan = of["many.plan"].ManyPlan(
        stack=stack, recipe=recipe(config), recipes=(recipe(config),) * 2,
        precision=of["runtime.precision"].PRECISIONS["bf16"], dropouts=(stack.dropout,) * 2,
    )  # fmt: skip
    work: list[Work] = []
    context = context_of(plan, work, touched)
    numbers = {"count": 2, "nets": 1, "slots": 512, "steps": 9}
    kernels = of["many.fused"].FusedKernels(context, plan, **numbers)
    made = of["many.fused"].FusedStep(context, Gemms(), kernels)
    with patch.object(of["step.step"].cuda, "Event", Event):
        made._record(3)
    return work


@pytest.mark.parametrize("hidden", [(40,), (40, 24), (40, 24, 16, 8)], ids=str)
@pytest.mark.parametrize("activation", ["relu", "x * sigmoid(x)"])
def test_no_kernel_runs_before_what_it_reads_or_overwrites_is_ready(
    hidden: tuple[int, ...], activation: str, step: Any
) -> None:
    work = step(hidden, activation)
    assert sum(one.name == "gather_many" for one in work) == 3
    assert not hazards(work)


def test_the_rows_of_the_next_step_are_gathered_next_to_the_forward_pass(step: Any) -> None:
    work = step((40,), "relu")
    names = [one.name for one in work]
    first = work[names.index("forward_many")]
    gather = [one for one in work if one.name == "gather_many"][1]
    assert first not in gather.after


class BuiltIn:
    """A product whose algorithm is a built-in kernel."""

    is_own, parts = True, 3

    def __init__(self, product: Any, *_: Any) -> None:
        self.product = product

    def __call__(self, stream: Any) -> None:
        stream.queue("product", [], [])

    def launch_with(self, epilogue: Any, stream: Any) -> None:
        stream.queue("fused product", [], [])


def test_a_shape_of_one_network_can_use_built_in_products(modules: None) -> None:
    """In float32, with what follows them: all kernels that they need are loaded."""
    of = {name: importlib.import_module(f"pycuda_nn.cuda.{name}") for name in (
        "many.plan", "many.kernels", "step.step", "step.weights", "runtime.precision",
    )}  # fmt: skip
    config = nn.TrainConfig(hidden=(40, 24))
    stack = recognise(nn.Network.from_sizes((20, 40, 24, 3)))
    assert isinstance(stack, DenseStack)
    plan = of["many.plan"].ManyPlan(
        stack=stack, recipe=recipe(config), recipes=(recipe(config),),
        precision=of["runtime.precision"].PRECISIONS["float32"], dropouts=(stack.dropout,),
    )  # fmt: skip
    work: list[Work] = []
    target = of["step.weights"].GradientTarget(address=1)
    context = context_of(
        plan, work, lambda *_: ([], []), copies=1, master_kind=0, gradient=lambda *_: target
    )
    kernels = of["many.kernels"].ManyKernels(context, count=1, nets=1, slots=512, steps=9)
    made = of["step.step"].TrainingStep(context, SimpleNamespace(ready=BuiltIn), kernels)
    with patch.object(of["step.step"].cuda, "Event", Event):
        made._record(1)
    names = {one.name for one in work} - {"product", "fused product"}
    _, signatures, _ = plan.program(0)
    assert "biases" in names
    assert names <= set(signatures)
