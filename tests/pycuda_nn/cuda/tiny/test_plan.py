"""The plan of the tiny kernel, and which networks it supports."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from pycuda_nn.backends.testing import ADAM, FOCAL, HUBER, SGD
from pycuda_nn.cuda.runtime.compiler import find_nvcc
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.cuda.stack import recognise as recognise_stack
from pycuda_nn.cuda.tiny.kernel import source_of
from pycuda_nn.cuda.tiny.plan import TinyPlan, plans
from pycuda_nn.cuda.tiny.recognise import recognise
from pycuda_nn.layers import LossKernels, Softmax
from pycuda_nn.network import Network
from pycuda_nn.protocols import TrainingRecipe

H200: dict[str, Any] = {
    "compute_capability": (9, 0), "multiprocessors": 132, "shared_bytes": 232_448,
}  # fmt: skip
NVCC = find_nvcc()


def stack_of(sizes: tuple[int, ...], **more: Any) -> DenseStack:
    stack = recognise_stack(Network.from_sizes(sizes, **more))
    assert isinstance(stack, DenseStack)
    return stack


def plan_of(
    sizes: tuple[int, ...], batch: int, gpu: dict[str, Any] | None = None, **more: Any
) -> TinyPlan | NotCovered:
    recipe = TrainingRecipe(optimizer=ADAM, batch_size=batch, l2=0.0, seed=0)
    facts: Any = SimpleNamespace(**H200 | (gpu or {}))
    return recognise(stack_of(sizes, **more), recipe, "float32", facts)


@pytest.mark.parametrize(
    ("sizes", "batch", "blocks", "cluster"),
    [
        ((32, 64, 1), 16, 1, False),
        ((20, 40, 40, 3), 64, 8, True),
        ((64, 128, 10), 64, 16, False),
        ((128, 256, 1), 1024, 128, False),
    ],
)
def test_shares_the_rows_as_measured(
    sizes: tuple[int, ...], batch: int, blocks: int, cluster: bool
) -> None:
    loss = (
        "logistic" if sizes[-1] == 1 and batch > 16 else "softmax" if sizes[-1] > 1 else "squared"
    )
    plan = plan_of(sizes, batch, loss=loss)
    assert isinstance(plan, TinyPlan), plan
    assert (plan.blocks, plan.cluster) == (blocks, cluster)
    assert plan.shared_bytes <= H200["shared_bytes"]


def test_every_plan_fits_the_gpu() -> None:
    for sizes, batch in (((32, 64, 1), 7), ((128, 256, 1), 3000), ((5, 200, 200, 2), 100)):
        for clusters in (False, True):
            found = plans(
                stack_of(sizes, loss="squared"), batch, "bf16", 2,
                multiprocessors=60, shared_bytes=163 << 10, clusters=clusters,
            )  # fmt: skip
            for plan in found:
                assert plan.blocks <= 60
                assert plan.rows <= plan.threads
                assert plan.shared_bytes <= 163 << 10
                assert plan.rows * plan.blocks >= batch
                assert clusters or not plan.cluster


def test_says_why_it_is_not_used() -> None:
    large = plan_of((784, 512, 10), 128)
    assert isinstance(large, NotCovered)
    assert "too large" in large.reason
    old = plan_of((32, 64, 1), 16, {"compute_capability": (7, 5)}, loss="squared")
    assert isinstance(old, NotCovered)
    assert "7.5" in old.reason


def test_a_loss_without_the_kernel_of_a_row_is_not_supported() -> None:
    stack = stack_of((4, 3))
    kernels = LossKernels(source="mine.cuh", step="mine", metrics="mine_metrics")
    recipe = TrainingRecipe(optimizer=SGD, batch_size=4, l2=0.0, seed=0)
    facts: Any = SimpleNamespace(**H200)
    found = recognise(dataclasses.replace(stack, kernels=kernels), recipe, "float32", facts)
    assert isinstance(found, NotCovered)
    assert Softmax.name in found.reason


@pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "blocks", "cluster", "more"),
    [
        ("sm_80", 1, False, {"loss": "squared", "activation": "tanh"}),
        ("sm_80", 16, False, {"loss": FOCAL, "activation": "gelu", "dropout": 0.5}),
        ("sm_90", 4, True, {"loss": HUBER, "dropout": 0.5}),
        ("sm_90", 2, False, {"loss": "logistic"}),
    ],
)
def test_compiles(arch: str, blocks: int, cluster: bool, more: dict[str, Any]) -> None:
    assert NVCC is not None
    stack = stack_of((9, 20, 30, 1 if more["loss"] == "logistic" else 3), **more)
    plan = TinyPlan(
        stack=stack, batch=64, precision="fp16", optimizer=2, blocks=blocks, cluster=cluster
    )
    assert NVCC.compile(source_of(plan), arch, ["-std=c++17", *plan.macros()])
