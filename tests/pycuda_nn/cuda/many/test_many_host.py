"""What the host prepares for the kernels of many networks, with a driver that notes its calls."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest

DRIVERS = (
    *("pycuda", "pycuda.driver", "cuda", "cuda.bindings", "cuda.bindings.driver"),
    *("nvmath", "nvmath.bindings", "nvmath.bindings.cublasLt"),
)


class Driver(MagicMock):
    """Notes the names of the calls, which all succeed."""

    def noted(self, calls: list[str]) -> Driver:
        def noting(name: str) -> Callable[..., tuple[int]]:
            def call(*_: object) -> tuple[int]:
                calls.append(name)
                return (0,)

            return call

        for name in ("cuMemsetD32Async", "cuLaunchKernel", "cuLaunchCooperativeKernel"):
            setattr(self, name, noting(name))
        return self


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Let the rooms of the GPU be imported without one; forget them at the end."""
    calls: list[str] = []
    driver = Driver().noted(calls)
    modules: dict[str, Any] = {name: MagicMock() for name in DRIVERS}
    modules["cuda.bindings"].driver = modules["cuda.bindings.driver"] = driver
    with patch.dict(sys.modules, modules):
        yield calls


def imported(name: str) -> Any:
    return importlib.import_module(f"pycuda_nn.cuda.{name}")


def test_the_barriers_of_each_launch_of_a_batch_of_one_start_at_0(log: list[str]) -> None:
    """Its blocks are not always a cluster: then they count their arrivals in GPU memory."""
    loaded = imported("tiny.kernel").LoadedKernel
    kernel = imported("many.tiny").ManyTinyKernel
    plan = SimpleNamespace(blocks=64, cluster=False, threads=256, shared_bytes=1000)
    made, made._kernel = kernel.__new__(kernel), loaded.__new__(loaded)
    made._kernel._plan, made._kernel._function = plan, 0
    made._places, made._constants, made._fields = {"counter": 0}, {}, {}
    made._networks = made._chosen = 1
    made._members = 0
    source = SimpleNamespace(x=0, y=0, order=0, rates=0, losses=0, clock=0)
    places = {"params": 0, "first": 0, "second": 0}
    for first in (0, 3):
        made.run(MagicMock(), source, **places, rows=1, first_step=first, n_steps=3)
    assert log == ["cuMemsetD32Async", "cuLaunchCooperativeKernel"] * 2


@pytest.mark.parametrize(("batch", "tile"), [(64, 64), (150, 128), (40_000, 128)])
def test_each_block_of_rows_has_room_for_its_column_sums(
    batch: int, tile: int, log: list[str]
) -> None:
    plan = imported("many.plan")
    recipe = SimpleNamespace(batch_size=batch)
    stack = SimpleNamespace(keeps_z=False)
    precision = SimpleNamespace(item_bytes=2)
    shape = SimpleNamespace(
        count=3, recipe=recipe, stack=stack, precision=precision,
        layout=SimpleNamespace(sizes=(8, 24, 16)), target_words=lambda: 1, tile_rows=tile,
    )  # fmt: skip
    shape.most_parts = lambda rows: plan.ManyPlan.most_parts(shape, rows)
    memory = MagicMock()
    memory.allocate.side_effect = lambda n_bytes, what: n_bytes
    buffers = plan.ManyBuffers(memory, shape, batch)
    blocks = -(-batch // tile)
    for width, room in zip((24, 16), buffers.partials, strict=True):
        assert room >= 4 * 3 * width * blocks


@pytest.mark.parametrize("networks", [1, 2, 3, 128])
@pytest.mark.parametrize("rows", [1, 100, 2200, 20_000])
def test_each_block_of_the_last_layer_has_room_for_its_column_sums(
    rows: int, networks: int, log: list[str]
) -> None:
    parts = imported("step.buffers").PARTS
    kernels = imported("many.fused").FusedKernels
    made = kernels.__new__(kernels)
    layer = SimpleNamespace(inputs=256)
    made._count = networks
    made._context = SimpleNamespace(rows=rows, multiprocessors=132, layers=[layer])
    assert 1 <= made._head_blocks() <= min(parts, rows)


def test_an_order_is_drawn_ahead_and_again_if_another_one_is_wanted(log: list[str]) -> None:
    from pycuda_nn.rng import EpochOrder

    drawn: list[dict[int, tuple[int, int]]] = []

    def note(pairs: Any, _: object) -> None:
        drawn.append({k: pair for k, pair in enumerate(pairs) if pair != (0, 0)})

    orders = imported("many.orders")
    of_device = SimpleNamespace(rows=0, slots=8, draw_many=note)
    made = orders.Orders(of_device, 3, MagicMock())

    def epoch(number: int, *members: int) -> None:
        made.take({k: EpochOrder(n=4, seed=k + 7, epoch=number) for k in members})
        made.draw_ahead()

    with patch.object(orders, "cuda"):
        epoch(0, 0, 1, 2)
        epoch(1, 0, 1, 2)
        epoch(2, 0, 2)  # the other one has ended
        epoch(5, 0, 2)  # not the next one
        made.take({1: np.arange(4)})
        made.draw_ahead()
    assert drawn == [
        {0: (7, 0), 1: (8, 0), 2: (9, 0)},
        {0: (7, 1), 1: (8, 1), 2: (9, 1)},
        {0: (7, 2), 1: (8, 2), 2: (9, 2)},
        {0: (7, 3), 2: (9, 3)},
        {0: (7, 5), 2: (9, 5)},
        {0: (7, 6), 2: (9, 6)},
    ]


@pytest.mark.parametrize(
    ("shared", "tile", "stages"),
    [(232448, 128, 4), (232448, 64, 5), (166912, 128, 3), (166912, 64, 4), (101376, 64, 3)],
)
def test_two_blocks_of_a_product_of_rows_fit_on_a_multiprocessor(
    shared: int, tile: int, stages: int, log: list[str]
) -> None:
    plan = imported("many.plan").ManyPlan
    batch = SimpleNamespace(tile_rows=tile)
    assert plan.stages(batch, SimpleNamespace(shared_bytes=shared)) == stages
