"""Records the kernels of a step without a GPU: what each touches, and what ends before it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Touched = Callable[[str, Any], tuple[list[int], list[int]]]
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


def hazards(all_work: list[Work]) -> list[str]:
    """Return the pairs that touch the same memory and can run at the same time."""
    return [
        f"{one.name} and {two.name}"
        for place, two in enumerate(all_work)
        for one in all_work[:place]
        if one not in two.after
        and (one.writes & (two.reads | two.writes) or one.reads & two.writes)
    ]


class Module:
    """Notes kernels; ``touched`` returns the addresses that one reads and writes."""

    def __init__(self, touched: Touched) -> None:
        self._touched = touched

    def launch(self, name: str, _: Any, __: int, stream: Stream, *words: Any) -> None:
        stream.queue(name, *self._touched(name, words))


def addresses(count: int, first: int) -> list[int]:
    return [first + (k << 20) for k in range(count)]


def context_of(plan: Any, work: list[Work], touched: Touched, **weights: Any) -> Any:
    """Return the context of a step of 32 rows whose kernels are noted in ``work``."""
    streams = [Stream(work) for _ in range(4)]
    layers = len(plan.layout.layers)
    n, places = layers - 1, iter(addresses(64, 1 << 40))

    def some(count: int) -> list[int]:
        return [next(places) for _ in range(count)]

    return importlib.import_module("pycuda_nn.cuda.step.context").StepContext(
        plan=plan,
        module=Module(touched),
        streams=SimpleNamespace(
            all=streams, main=streams[0], sides=streams[1:], workspaces=[(0, 0)] * 4,
            side=lambda layer: 1 + layer % 3,
        ),
        weights=SimpleNamespace(
            value=lambda offset, side=None: (1 << 50) + 2 * offset, grad=0, first=1 << 51,
            second=0, master_at=lambda offset: (1 << 52) + 2 * offset, **weights,
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
