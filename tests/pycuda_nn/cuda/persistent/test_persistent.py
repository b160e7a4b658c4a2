"""Test the persistent kernel without a GPU: its plan, its compilation and its results."""

from __future__ import annotations

import ctypes
import dataclasses
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pycuda_nn.cuda.persistent.kernel import FILES
from pycuda_nn.cuda.persistent.plan import KernelPlan, cycles, partition, quickest
from pycuda_nn.cuda.persistent.recognise import recognise
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.cuda.stack import recognise as recognise_stack
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper
from tests.pycuda_nn.cuda.persistent.emulation import Emulation, emulated_source
from tests.pycuda_nn.cuda.persistent.persistent_cases import H200, Case, check

NVCC = find_nvcc()
KNOWN = NVCC.architectures() if NVCC else []
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")
needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
MNIST = Case(sizes=(784, 512, 512, 10), batch=128)
SHAPES = (
    MNIST,
    Case(sizes=(33, 50, 7), batch=48),
    Case(sizes=(64, 128, 10), batch=64),
    Case(sizes=(784, 640, 640, 10), batch=128),
    Case(sizes=(784, 512, 512, 10), batch=512),
    Case(sizes=(20, 40, 50, 30, 40, 20), batch=400),
    Case(sizes=(100, 200, 96, 64), batch=256),
)


# ---- the plan


@pytest.mark.parametrize("case", SHAPES, ids=str)
@pytest.mark.parametrize("multiprocessors", [132, 108, 40, 7])
def test_every_weight_has_one_place_and_every_block_is_resident(case, multiprocessors) -> None:
    chosen = quickest(case.stack, case.batch, multiprocessors, H200["shared_bytes"])
    if chosen is None:
        assert multiprocessors < 108
        return
    assert chosen.blocks <= multiprocessors
    assert chosen.rows * chosen.row_groups == chosen.batch == case.batch
    assert chosen.batch % chosen.chunk == 0
    assert chosen.shared_bytes <= H200["shared_bytes"]
    pairs = zip(chosen.sizes[:-1], chosen.sizes[1:], strict=True)
    for tiles, (ins, outs) in zip(chosen.tiles, pairs, strict=True):
        down, across = -(-outs // tiles.outs), -(-ins // tiles.ins)
        assert tiles.count == down * across <= chosen.blocks
        assert tiles.outs in (16, 32, 64, 128)
        assert tiles.ins % 8 == 0
        assert 0 <= tiles.first_block < chosen.blocks
        assert tiles.fragments * 8 * (128 // tiles.outs) >= tiles.ins


def test_the_partitions_that_were_measured_are_in_their_order() -> None:
    """Microseconds of the first case on an H200: 8 x 16: 13.0, 4 x 32: 14.4, 4 x 16: 22."""
    groups = ((8, 16), (4, 32), (4, 16))
    models = [cycles(MNIST.plan()), *(cycles(shared(MNIST, *both)) for both in groups)]
    assert models[0] == models[1] < models[2] < models[3]
    for case, groups in (
        (Case(sizes=(784, 256, 10), batch=128), (8, 16)),
        (Case(sizes=(784, 640, 640, 10), batch=128), (8, 16)),
        (Case(sizes=(784, 512, 512, 10), batch=256), (8, 16)),
        (Case(sizes=(784, 512, 512, 10), batch=512), (16, 8)),
    ):
        assert (case.plan().row_groups, case.plan().column_groups) == groups


def shared(case: Case, row_groups: int, column_groups: int) -> KernelPlan:
    made = partition(case.stack, case.batch, row_groups, column_groups)
    assert made is not None
    return made


def facts(**changes: Any) -> Any:
    return SimpleNamespace(compute_capability=(9, 0), **(H200 | changes))


def test_what_is_covered_and_why_not() -> None:
    network, recipe = MNIST.network, MNIST.recipe

    def found(*, network=network, precision="bf16", gpu=facts(), **changes: Any) -> str:  # noqa: B008
        stack = recognise_stack(network)
        assert isinstance(stack, DenseStack)
        plan = recognise(stack, dataclasses.replace(recipe, **changes), precision, gpu)
        return plan.reason if isinstance(plan, NotCovered) else "covered"

    def sized(*sizes: int, **more: Any) -> Network:
        return Network.from_sizes(sizes, **more)

    adam = AdamHyper(beta1=0.9, beta2=0.999, eps=1e-8)
    assert found() == "covered"
    assert found(precision="fp16") == "covered"
    assert found(batch_size=16) == "covered"
    assert found(batch_size=512) == "covered"
    assert found(network=sized(784, 512, 64)) == "covered"
    assert found(precision="tf32").startswith("tf32 ")
    assert found(network=sized(784, 512, 10, dropout=0.5)).startswith("dropout ")
    assert re.search(r"minibatch .*\b100 ", found(batch_size=100))
    assert re.search(r"minibatch .*\b1,024 ", found(batch_size=1024))
    assert found(optimizer=adam).startswith("Adam ")
    assert found(network=sized(784, 10)).startswith("0 hidden layers ")
    assert found(network=sized(784, 64, 64, 64, 64, 64, 10)).startswith("5 hidden layers ")
    assert found(network=sized(784, 512, 65)).startswith("65 classes ")
    assert "loss 'logistic' " in found(network=sized(784, 512, 1, loss="logistic"))
    assert "network" in found(network=sized(2048, 4096, 4096, 10))
    old = SimpleNamespace(compute_capability=(7, 5), **H200)
    assert "compute capability 7.5 " in found(gpu=old)
    assert "network" in found(gpu=facts(shared_bytes=48 << 10))


# ---- the kernel compiles


def compile_kernel(
    arch: str, case: Case, chosen: KernelPlan | None = None, more: str = ""
) -> bytes:
    assert NVCC is not None
    head = (chosen or case.plan()).source(case.activation, nesterov=case.nesterov)
    macro = {"bf16": "-DT_BFLOAT16", "fp16": "-DT_HALF"}[case.precision]
    return NVCC.compile(head + kernel_source(*FILES) + more, arch, ["-std=c++17", macro])


SMALL = Case(sizes=(33, 50, 40, 7), batch=48, precision="fp16")
COMPILED = (("sm_80", MNIST), ("sm_80", SMALL), ("sm_90a", MNIST), ("sm_100", SMALL))


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "case"),
    [(arch, case) for arch, case in COMPILED if arch in KNOWN],
)
def test_compiles(arch: str, case: Case) -> None:
    assert compile_kernel(arch, case)


@needs_nvcc
@pytest.mark.slow
def test_python_and_the_kernel_agree_on_the_argument() -> None:
    checks = "".join(
        f'static_assert(__builtin_offsetof(Persistent, {name}) == {offset}, "{name}");\n'
        for name, offset in (
            (name, getattr(structs.Persistent, name).offset)
            for name, _ in structs.Persistent._fields_
        )
    )
    size = f'static_assert(sizeof(Persistent) == {ctypes.sizeof(structs.Persistent)}, "size");\n'
    assert compile_kernel("sm_80", Case(sizes=(33, 50, 7), batch=16), more=checks + size)


def test_no_header_is_needed() -> None:
    assert not re.search(r"^\s*#\s*include", kernel_source(*FILES), re.MULTILINE)


# ---- its results, emulated on the CPU

EMULATED = (  # all activations, both precisions, 1 to 4 hidden layers, gradients in chunks
    Case(sizes=(33, 50, 7), batch=48),
    Case(sizes=(33, 50, 7), batch=48, activation="sigmoid", nesterov=True, l2=0.01),
    Case(sizes=(20, 40, 50, 9), batch=32, activation="tanh", precision="fp16", l2=0.1),
    Case(sizes=(20, 40, 50, 30, 40, 20), batch=32, precision="fp16", nesterov=True),
    Case(sizes=(70, 90, 40), batch=144, activation="tanh", steps=2),
)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("case", EMULATED, ids=str)
def test_trains_as_the_twin_whoever_runs_when(case: Case, tmp_path: Path) -> None:
    arrays = case.arrays()
    emulation = Emulation(case, case.plan(multiprocessors=20), tmp_path)
    first = emulation.run(arrays, (1,), seed=1)
    whole = emulation.run(arrays, (case.steps,), seed=2)
    check(case, arrays, first, whole)
    split = emulation.run(arrays, (1, case.steps - 1), seed=3)
    for name, array in whole.items():
        np.testing.assert_array_equal(split[name], array, name)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize(("row_groups", "column_groups"), [(1, 3), (2, 2), (4, 4), (8, 1)])
def test_gives_the_same_however_it_is_shared(row_groups, column_groups, tmp_path: Path) -> None:
    case = Case(sizes=(40, 64, 96, 5), batch=128, activation="tanh", precision="fp16", steps=2)
    arrays = case.arrays()
    emulation = Emulation(case, shared(case, row_groups, column_groups), tmp_path)
    check(case, arrays, emulation.run(arrays, (1,)), emulation.run(arrays, (2,)))


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if (is_empty(*(const uint4*)", "if (false && is_empty(*(const uint4*)"),
        ("      empty_old();\n", ""),
        ("await(a.counter, BLOCKS * (step + 1))", "await(a.counter, 0)"),
    ],
    ids=["reads too soon", "never empties", "empties too soon"],
)
def test_the_emulator_finds_a_fault(right: str, wrong: str, tmp_path: Path) -> None:
    case = Case(sizes=(20, 40, 50, 9), batch=32, activation="tanh", steps=8)
    source = emulated_source(case, case.plan())
    assert source.count(right) == 1
    emulation = Emulation(case, case.plan(), tmp_path, source=source.replace(right, wrong))
    with pytest.raises(AssertionError):
        train_often(emulation)


def train_often(emulation: Emulation) -> None:
    """Check the training under several schedules."""
    case, arrays = emulation.case, emulation.case.arrays()
    first = emulation.run(arrays, (1,))
    for seed in range(4):
        check(case, arrays, first, emulation.run(arrays, (case.steps,), seed=seed))
