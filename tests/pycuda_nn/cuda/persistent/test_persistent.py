"""Test the persistent kernel without a GPU: its compilation and its results."""

from __future__ import annotations

import ctypes
import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from pycuda_nn.cuda.persistent.device_code import FILES
from pycuda_nn.cuda.persistent.kernel import source_of
from pycuda_nn.cuda.persistent.plan import KernelPlan
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from tests.pycuda_nn.cuda.persistent.emulation import Emulation, emulated_source
from tests.pycuda_nn.cuda.persistent.persistent_cases import Case, check, check_float32, short

NVCC = find_nvcc()
KNOWN = NVCC.architectures() if NVCC else []
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")
needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
MNIST = Case(sizes=(784, 512, 512, 10), batch=128)
# ---- the kernel compiles


def compile_kernel(
    arch: str, case: Case, chosen: KernelPlan | None = None, more: str = ""
) -> bytes:
    assert NVCC is not None
    head = source_of(chosen or case.plan())
    macro = f"-D{PRECISIONS[case.precision].macro}"
    return NVCC.compile(head + more, arch, ["-std=c++17", macro])


SMALL = Case(
    sizes=(33, 50, 40, 7),
    batch=45,
    precision="fp16",
    optimizer="adam",
    dropout=0.5,
    activation="gelu",
)
FLOATS = dataclasses.replace(SMALL, precision="float32")
COMPILED = (
    *(("sm_80", MNIST), ("sm_80", SMALL), ("sm_90a", MNIST), ("sm_100", SMALL)),
    *(("sm_80", FLOATS), ("sm_90a", dataclasses.replace(MNIST, precision="tf32"))),
)


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

# All optimizers, losses and activations, both precisions, 1 to 4 hidden layers, gradients in
# chunks, padded rows, dropout of odd widths.
HUBER = "where(abs(z - y) < 1, 0.5 * (z - y)**2, abs(z - y) - 0.5)"
EMULATED = (
    Case(sizes=(33, 50, 7), batch=48),
    Case(sizes=(33, 50, 7), batch=48, activation="sigmoid", optimizer="nesterov", l2=0.01),
    Case(sizes=(20, 40, 50, 9), batch=32, activation="tanh", precision="fp16", l2=0.1),
    Case(sizes=(20, 40, 50, 30, 40, 20), batch=32, precision="fp16", optimizer="nesterov"),
    Case(sizes=(70, 90, 40), batch=48, activation="tanh", steps=2),
    Case(sizes=(33, 50, 70, 7), batch=37, optimizer="adam", dropout=0.5),
    Case(sizes=(20, 40, 33), batch=10, loss="squared", activation="tanh", precision="fp16",
         optimizer="adam", dropout=0.2, l2=0.01),
    Case(sizes=(33, 50, 1), batch=40, loss="logistic", activation="softplus"),
    Case(sizes=(20, 40, 3), batch=150, loss="squared", activation="selu", precision="fp16",
         dropout=0.1, steps=2),
    Case(sizes=(20, 40, 3), batch=1, activation="elu", optimizer="adam"),
    Case(sizes=(33, 50, 70, 3), batch=20, activation="gelu", loss="-y * (1 - p)**2 * logp"),
    Case(sizes=(20, 40, 33), batch=20, activation="cos(x)", loss=HUBER, dropout=0.3,
         precision="fp16"),
    Case(sizes=(20, 48, 3), batch=17, activation="leaky_relu", precision="fp16", dropout=0.9),
    Case(sizes=(33, 50, 70, 7), batch=37, precision="float32", optimizer="adam", dropout=0.5),
    Case(sizes=(33, 50, 40), batch=40, precision="float32", loss="squared", activation="gelu"),
    Case(sizes=(20, 40, 50, 30, 1), batch=32, precision="float32", loss="logistic", l2=0.1,
         activation="tanh", steps=2),
    Case(sizes=(20, 40, 50, 20), batch=32, precision="tf32", optimizer="nesterov"),
    Case(sizes=(33, 50, 3), batch=20, precision="tf32", activation="silu", dropout=0.3),
)  # fmt: skip


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("case", EMULATED, ids=short)
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
@pytest.mark.parametrize(
    ("row_groups", "column_groups", "chunk", "precision"),
    [
        (1, 3, 128, "fp16"),
        (2, 2, 64, "fp16"),
        (4, 4, 128, "fp16"),
        (8, 1, 32, "fp16"),
        (8, 4, 32, "float32"),
    ],
)
def test_gives_the_same_however_it_is_shared(
    row_groups: int, column_groups: int, chunk: int, precision: str, tmp_path: Path
) -> None:
    case = Case(sizes=(40, 64, 96, 5), batch=128, activation="tanh", precision=precision, steps=2)
    arrays = case.arrays()
    plan = dataclasses.replace(case.divided(row_groups, column_groups), chunk=chunk)
    emulation = Emulation(case, plan, tmp_path)
    check(case, arrays, emulation.run(arrays, (1,)), emulation.run(arrays, (2,)))


@needs_gcc
@pytest.mark.slow
def test_float32_is_as_accurate_as_numpy(tmp_path: Path) -> None:
    case = Case(sizes=(200, 150, 33), batch=96, precision="float32", activation="tanh")
    arrays = case.arrays()
    emulation = Emulation(case, case.plan(multiprocessors=12), tmp_path)
    check_float32(case, arrays, emulation.run(arrays, (1,), in_order=True))


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("place", [slice(5), slice(-5, None)], ids=["weights", "biases"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_nan_with_the_bits_of_an_empty_word_does_not_stop_the_kernel(
    precision: str, place: slice, tmp_path: Path
) -> None:
    case = Case(sizes=(33, 50, 7), batch=16, precision=precision, steps=2)
    arrays = case.arrays()
    arrays["params"][place] = np.full(5, 0xFFFFFFFF, dtype=np.uint32).view(np.float32)
    losses = Emulation(case, case.plan(), tmp_path).run(arrays, (2,))["losses"]
    assert np.isnan(losses).all()


DEEP = Case(sizes=(20, 40, 50, 9), batch=32, activation="tanh", steps=8)
ODD = Case(sizes=(33, 50, 7), batch=21, optimizer="adam", dropout=0.5)
CURVED = Case(sizes=(33, 50, 70, 3), batch=16, activation="gelu")


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        (DEEP, "if (is_empty(*(const uint4*)", "if (false && is_empty(*(const uint4*)"),
        (DEEP, "      empty_old();\n", ""),
        (DEEP, "await(a.counter, BLOCKS * (step + 1))", "await(a.counter, 0)"),
        (ODD, "row + r < EXAMPLES", "true"),
        (ODD, "a.clock[1] + a.first_step", "a.first_step"),
        (CURVED, "if constexpr (SLOPES) settle_rows<N, slopes_at>(s.slopes);", ""),
    ],
    ids=[
        "reads too soon",
        "never empties",
        "empties too soon",
        "counts padding",
        "draws the masks of another step",
        "reads slopes too soon",
    ],
)
def test_the_emulator_finds_a_fault(case: Case, right: str, wrong: str, tmp_path: Path) -> None:
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
