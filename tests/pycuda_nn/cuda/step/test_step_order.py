"""Kernels of a captured step that touch the same memory run in the order of the queue."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

import pycuda_nn as nn
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.training.fit_to_data import recipe
from tests.pycuda_nn.cuda.step.recording import DRIVERS, Event, Work, context_of, hazards

KINDS = {"forward": (False, False), "data": (True, False), "weights": (False, True)}


def of_update(u: Any) -> tuple[list[int], list[int]]:
    read = [u.grad, u.first, u.partial, u.loss, u.clock]
    return read, [u.weight, u.master, u.first, u.bias, u.bias_master, u.bias_first]


def touched(name: str, words: Any) -> tuple[list[int], list[int]]:
    """Return the addresses that a kernel reads and writes."""
    one = words[0]
    if name == "gather":
        return [words[2], words[3]], [words[9], words[10]]
    if name == "tick":
        return [], [one]
    if name == "softmax_xent":
        return list(words[:3]), [words[7], words[8]]
    if name == "biases":
        layers = [u for u, end in zip(one.u, one.end, strict=True) if end]
        read = [a for u in layers for a in (u.partial, u.loss, u.clock)]
        return read, [a for u in layers for a in (u.bias, u.bias_master, u.bias_first)]
    if name == "head":
        read = [one.h, one.weight, one.bias, one.y]
        return read, [one.below, one.delta, one.loss, one.partial, one.partial_below]
    if name == "update":
        return of_update(one)
    if name == "activation_grad" and not one.h:  # only the sums
        return [one.a], [one.partial]
    assert name in ("bias_activation", "activation_grad")
    return [one.a, one.h, one.bias, one.clock], [one.a, one.z, one.partial]


class Gemm:
    """A product; a built-in kernel if its kind is among ``own``."""

    parts = 3

    def __init__(self, product: Any, own: tuple[str, ...]) -> None:
        self.product = product
        self.is_own = (product.trans_a, product.trans_b) in [KINDS[kind] for kind in own]

    def __call__(self, stream: Any) -> None:
        p = self.product
        stream.queue("product", [p.a, p.b, p.relu_bias, p.d if p.beta else 0], [p.d])

    def kind(self) -> str:
        p = self.product
        return f"{p.m} {p.n} {p.k} {p.trans_a} {p.trans_b}"

    def launch_with(self, epilogue: Any, stream: Any) -> None:
        p, u = self.product, epilogue.arguments
        if epilogue.code.number == 3:
            stream.queue("fused update", [p.a, p.b, u.first, u.clock], [u.weight, u.first])
            return
        read = [p.a, p.b, u.bias, u.h, u.clock]
        stream.queue("fused product", read, [p.d, u.z, u.partial])


class Graph:
    """Records its work."""

    def __init__(self, _: Any, body: Callable[[], object]) -> None:
        body()

    def launch(self) -> None:
        """Do nothing."""

    close = launch


class Gemms:
    """Makes products, of which those of the kinds ``own`` are built-in kernels."""

    def __init__(self, own: tuple[str, ...], work: list[Work]) -> None:
        self._own, self._work = own, work
        self.compiled: list[int] = []

    def ready(self, product: Any, *_: Any) -> Gemm:
        return Gemm(product, self._own)

    def compile(self, kinds: Any) -> None:
        assert not self._work
        self.compiled += [code.number for _, code in kinds]


@pytest.fixture
def step() -> Iterator[Any]:
    """Return a function that records three steps of a network and returns their work."""
    modules: dict[str, Any] = {name: MagicMock() for name in DRIVERS}
    with patch.dict(sys.modules, modules):
        yield recorded


def recorded(hidden: tuple[int, ...], own: tuple[str, ...], **settings: Any) -> list[Work]:
    of = {name: importlib.import_module(f"pycuda_nn.cuda.{name}") for name in (
        "step.plan", "step.step", "step.weights", "runtime.precision",
    )}  # fmt: skip
    classes = settings.pop("classes", 3)
    config = nn.TrainConfig(hidden=hidden, optimizer="sgd", **settings)
    network = nn.Network.from_sizes(
        (20, *hidden, classes), activation=config.activation, dropout=config.dropout
    )
    stack = recognise(network)
    assert isinstance(stack, DenseStack)
    plan = of["step.plan"].TrainingPlan(
        stack=stack, recipe=recipe(config), precision=of["runtime.precision"].PRECISIONS["float32"]
    )
    work: list[Work] = []
    target = of["step.weights"].GradientTarget
    context = context_of(
        plan, work, touched, copies=1, master_kind=0,
        gradient=lambda layer, beta: target(address=(1 << 51) + 4 * layer.weights, beta=beta),
    )  # fmt: skip
    gemms = Gemms(own, work)
    made = of["step.step"].TrainingStep(context, gemms)
    patched = patch.multiple(of["step.step"], Graph=Graph, cuda=SimpleNamespace(
        Event=Event, event_flags=MagicMock(),
    ))  # fmt: skip
    with patched:
        made.replay(3)
        compiled, launches = list(gemms.compiled), list(work)
        work.clear()
        made.replay(1)
    assert gemms.compiled == compiled
    assert compiled.count(3) == len(hidden) + 1  # updates
    return launches


@pytest.mark.parametrize("hidden", [(), (40,), (40, 24, 16, 8)], ids=str)
@pytest.mark.parametrize(
    "settings",
    [{}, {"dropout": 0.5}, {"activation": "x * sigmoid(x)"}, {"classes": 40, "dropout": 0.2}],
    ids=str,
)
@pytest.mark.parametrize("own", [(), ("forward", "data"), ("weights",), tuple(KINDS)], ids=str)
def test_no_kernel_runs_before_what_it_reads_or_overwrites_is_ready(
    own: tuple[str, ...], settings: dict[str, Any], hidden: tuple[int, ...], step: Any
) -> None:
    work = step(hidden, own, **settings)
    assert sum(one.name == "gather" for one in work) == 3
    assert not hazards(work)


@pytest.mark.parametrize("hidden", [(), (40,), (8,) * 9], ids=str)
@pytest.mark.parametrize("classes", [3, 40])  # the last layer and its loss: one kernel, or two
@pytest.mark.parametrize("own", [(), ("forward", "data"), ("weights",), tuple(KINDS)], ids=str)
def test_every_step_updates_all_weights_and_biases_once(
    own: tuple[str, ...], classes: int, hidden: tuple[int, ...], step: Any
) -> None:
    written = Counter(
        place
        for one in step(hidden, own, classes=classes)
        for place in one.writes
        if 1 << 50 <= place < 1 << 51
    )
    assert list(written.values()) == [3] * 2 * (len(hidden) + 1)


def test_built_in_products_include_what_follows_them(step: Any) -> None:
    """With dropout, a step of three layers is five launches in a row instead of twelve."""
    work = step((40, 24), tuple(KINDS), dropout=0.5)
    names = [one.name for one in work]
    assert names[: len(names) // 3 + 1].count("head") == 1
    assert not {"update", "bias_activation", "activation_grad", "product"} & set(names)
    assert names.count("fused product") == 3 * 3
    assert names.count("fused update") == 3 * 3
    assert names.count("biases") == 3


def test_without_them_every_kernel_is_queued(step: Any) -> None:
    names = [one.name for one in step((40, 24), (), dropout=0.5)]
    assert names.count("bias_activation") == 2 * 3
    assert names.count("update") == 3 * 3
    assert "biases" not in names
