"""The plan of the column kernel, and what the host queues; test_many_gpu.py has its results."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from pycuda_nn.cuda.many.columns_plan import ColumnsPlan, recognise
from pycuda_nn.cuda.many.sources import COLUMNS_FILES
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.cuda.stack import recognise as recognise_stack
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, SgdHyper, TrainingRecipe
from tests.pycuda_nn.cuda.many.test_many_host import log

__all__ = ["log"]
NVCC = find_nvcc()
H100 = {"compute_capability": (9, 0), "multiprocessors": 132, "shared_bytes": 232_448}
SGD = SgdHyper(momentum=0.9, nesterov=False)
ADAM = AdamHyper(beta1=0.9, beta2=0.999, eps=1e-8)
SHAPES = (
    ((784, 256, 10), 128),
    ((784, 200, 10), 100),
    ((20, 40, 3), 32),
    ((20, 40, 3), 33),
    ((64, 128, 10), 64),
)


def plan(
    sizes: tuple[int, ...] = (784, 256, 10),
    batch: int = 128,
    *,
    optimizer: SgdHyper | AdamHyper = SGD,
    activation: str = "relu",
    loss: str = "softmax",
    item_bytes: int = 2,
    **gpu: Any,
) -> ColumnsPlan | NotCovered:
    network = Network.from_sizes(sizes, activation=activation, loss=loss, dropout=0.0)
    stack = recognise_stack(network)
    assert isinstance(stack, DenseStack)
    recipe = TrainingRecipe(optimizer=optimizer, batch_size=batch, l2=0.0, seed=1)
    facts: Any = SimpleNamespace(**{**H100, **gpu})
    return recognise(stack, recipe, item_bytes, facts)


def test_a_block_has_16_columns_and_a_warp_a_seventh_of_the_inputs() -> None:
    made = plan()
    assert isinstance(made, ColumnsPlan)
    assert (made.blocks, made.workers, made.tiles, made.threads) == (16, 7, 7, 256)
    small = plan((20, 40, 3), 32)
    assert isinstance(small, ColumnsPlan)
    assert (small.blocks, small.workers, small.tiles) == (3, 2, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": ADAM},
        {"item_bytes": 4},
        {"activation": "x * sigmoid(x)"},
        {"loss": "squared"},
        {"sizes": (784, 256, 256, 10)},
        {"sizes": (784, 300, 10)},
        {"sizes": (784, 256, 20)},
        {"sizes": (800, 256, 10)},
        {"batch": 160},
        {"compute_capability": (8, 0)},
        {"multiprocessors": 60},
        {"multiprocessors": 112},
        {"sizes": (16, 16, 10), "batch": 512},
        {"sizes": (16, 256, 10), "batch": 544},
    ],
    ids=str,
)
def test_other_trainings_are_not_covered(changes: dict[str, Any]) -> None:
    assert isinstance(plan(**changes), NotCovered)


def test_a_part_of_a_gpu_has_room_for_eight_blocks() -> None:
    assert isinstance(plan((784, 128, 10), multiprocessors=16), ColumnsPlan)
    assert isinstance(plan((784, 129, 10), multiprocessors=16), NotCovered)
    assert isinstance(plan(multiprocessors=114), ColumnsPlan)


def test_the_unrolled_code_of_a_step_is_short() -> None:
    for batch in range(1, 1200, 7):
        for width in (16, 48, 256):
            made = plan((16, width, 10), batch)
            assert isinstance(made, NotCovered) or made.is_short
    assert isinstance(plan((784, 16, 10)), ColumnsPlan)
    assert isinstance(plan((64, 128, 10), 512), ColumnsPlan)


@pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")
@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "batch"), SHAPES, ids=str)
def test_the_plan_counts_the_shared_memory_of_the_source(
    sizes: tuple[int, ...], batch: int
) -> None:
    assert NVCC is not None
    made = plan(sizes, batch)
    assert isinstance(made, ColumnsPlan)
    source = kernel_source(*COLUMNS_FILES).replace(
        "sizeof(Shared) <= COLUMNS_SHARED", "sizeof(Shared) == COLUMNS_SHARED"
    )
    options = ["-DT_BFLOAT16", "-DACTIVATION=0", "-DDROPOUT=1", "-DOPTIMIZER=1", "-DMASTER=1"]
    assert NVCC.compile(source, "sm_90", ["-std=c++17", "-DGRADIENT", *options, *made.macros()])
    fewer = dataclasses.replace(made, workers=made.workers + 1)
    assert fewer.shared_bytes > made.shared_bytes


def test_a_long_epoch_is_several_launches_of_the_networks_that_train(log: list[str]) -> None:
    columns = importlib.import_module("pycuda_nn.cuda.many.columns")
    made = plan()
    kernel = columns.ColumnsKernel.__new__(columns.ColumnsKernel)
    kernel.plan, kernel._function, kernel._fields, kernel._members = made, 0, {}, 0
    kernel.choose([3, 1], None)
    launched: list[tuple[int, int]] = []
    run = kernel.run

    def noting(stream: Any, source: Any, first: int, count: int) -> None:
        launched.append((first, count))
        run(stream, source, first, count)

    kernel.run = noting
    ticks: list[tuple[Any, ...]] = []
    module = SimpleNamespace(launch=lambda *words: ticks.append(words))
    names = ("x", "y", "order", "rates", "losses", "clock")
    source = SimpleNamespace(**dict.fromkeys(names, 0))
    stream = SimpleNamespace(handle=0)
    epoch = columns.ColumnsEpoch(kernel, module, source, stream, 5000, 4, None)
    epoch.launch()
    assert launched == [(0, 4096), (4096, 904)]
    assert log == ["cuLaunchKernel", "cuLaunchKernel"]
    assert kernel._chosen == 2
    assert [words[0] for words in ticks] == ["tick_many"]
    assert ticks[0][-2:] == (5000, 4)
