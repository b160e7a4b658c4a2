"""Kernels of a fused step that touch the same memory run in the order in which they are queued."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

import pycuda_nn as nn
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.training.fit_to_data import recipe

DRIVERS = (
    *("pycuda", "pycuda.driver", "cuda", "cuda.bindings", "cuda.bindings.driver"),
    *("nvmath", "nvmath.bindings", "nvmath.bindings.cublasLt"),
)


@dataclass(eq=False)
class Work:
    """A kernel or product: what it touches, and all work that ends before it starts."""

    name: str
    reads: set[int]
    writes: set[int]
    after: set[Work] = field(default_factory=set)


class Stream:
    """Notes its work, each after the work before and after the events for which it waited."""

    def __init__(self, all_work: list[Work]) -> None:
        self._all, self._after = all_work, set[Work]()

    def queue(self, name: str, reads: Any, writes: Any) -> None:
        work = Work(name, set(filter(None, reads)), set(filter(None, writes)), set(self._after))
        self._all.append(work)
        self._after.add(work)

    def wait_for_event(self, event: Event) -> None:
        self._after |= event.after

    def recorded(self) -> set[Work]:
        return set(self._after)


class Event:
    """The work of a stream so far."""

    def __init__(self, *_: Any) -> None:
        self.after: set[Work] = set()

    def record(self, stream: Stream) -> None:
        self.after = stream.recorded()


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


class Module:
    def launch(self, name: str, _: Any, __: int, stream: Stream, *words: Any) -> None:
        stream.queue(name, *touched(name, words))


class Gemms:
    def ready(self, product: Any, *_: Any) -> Any:
        return lambda stream: stream.queue("product", [product.a, product.b], [product.d])


def addresses(count: int, first: int) -> list[int]:
    return [first + (k << 20) for k in range(count)]


@pytest.fixture
def step() -> Iterator[Any]:
    """Return a function that records three steps of a network and returns their work."""
    modules: dict[str, Any] = {name: MagicMock() for name in DRIVERS}
    with patch.dict(sys.modules, modules):
        yield recorded


def recorded(hidden: tuple[int, ...], activation: str) -> list[Work]:
    of = {name: importlib.import_module(f"pycuda_nn.cuda.{name}") for name in (
        "many.plan", "many.fused", "step.context", "step.step", "runtime.precision",
    )}  # fmt: skip
    config = nn.TrainConfig(hidden=hidden, optimizer="sgd", activation=activation)
    stack = recognise(nn.Network.from_sizes((20, *hidden, 3), activation=activation))
    assert isinstance(stack, DenseStack)
    plan = of["many.plan"].ManyPlan(
        stack=stack, recipe=recipe(config), recipes=(recipe(config),) * 2,
        precision=of["runtime.precision"].PRECISIONS["bf16"], dropouts=(stack.dropout,) * 2,
    )  # fmt: skip
    work: list[Work] = []
    streams = [Stream(work) for _ in range(4)]
    n, layers = len(hidden), len(hidden) + 1
    places = iter(addresses(64, 1 << 40))

    def some(count: int) -> list[int]:
        return [next(places) for _ in range(count)]

    context = of["step.context"].StepContext(
        plan=plan,
        module=Module(),
        streams=SimpleNamespace(
            all=streams, main=streams[0], sides=streams[1:], workspaces=[(0, 0)] * 4,
            side=lambda layer: 1 + layer % 3,
        ),
        weights=SimpleNamespace(
            value=lambda offset, side=None: (1 << 50) + 2 * offset, grad=0, first=1 << 51,
            second=0, master_at=lambda offset: (1 << 52) + 2 * offset,
        ),
        buffers=SimpleNamespace(
            x=some(2), y=some(2), activations=some(n), z=some(n), deltas=some(layers),
            logits=some(1)[0], partials=some(layers), loss=some(1)[0],
        ),
        source=SimpleNamespace(**dict(zip(
            ("x", "y", "order", "rates", "losses", "clock"), some(6), strict=True
        ))),
        rows=32, batch=32, multiprocessors=132,
    )  # fmt: skip
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
    hazards = [
        f"{one.name} and {two.name}"
        for place, two in enumerate(work)
        for one in work[:place]
        if one not in two.after
        and (one.writes & (two.reads | two.writes) or one.reads & two.writes)
    ]
    assert not hazards


def test_the_rows_of_the_next_step_are_gathered_next_to_the_forward_pass(step: Any) -> None:
    work = step((40,), "relu")
    names = [one.name for one in work]
    first = work[names.index("forward_many")]
    gather = [one for one in work if one.name == "gather_many"][1]
    assert first not in gather.after
