"""The kernels of a step compile for every architecture and in every variant."""

from __future__ import annotations

import ctypes
import re

import pytest

from pycuda_nn.cuda import structs
from pycuda_nn.cuda.compiler import find_nvcc, kernel_source

NVCC = find_nvcc()
KNOWN = NVCC.architectures() if NVCC else []
WANTED = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")
FILES = ("common.cuh", "step.cuh", "metrics.cuh", "order.cuh", "head.cuh")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")


def compile_step(arch: str, *defines: str, source: str = "") -> bytes:
    assert NVCC is not None
    options = ["-std=c++17", "-DHEAD_WIDTH=48", "-DHEAD_CLASSES=7", *defines]
    return NVCC.compile(kernel_source(*FILES) + source, arch, options)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("arch", [arch for arch in WANTED if arch in KNOWN])
def test_for_every_architecture(arch: str) -> None:
    defines = ("-DT_BFLOAT16", "-DMASTER=1", "-DACTIVATION=0", "-DDROPOUT=0", "-DOPTIMIZER=0")
    assert compile_step(arch, *defines)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "master", "activation", "dropout", "optimizer"),
    [("FLOAT", 0, 1, 1, 1), ("HALF", 2, 2, 0, 2), ("BFLOAT16", 2, 0, 1, 0)],
)
def test_in_every_variant(
    kind: str, master: int, activation: int, dropout: int, optimizer: int
) -> None:
    defines = (
        f"-DT_{kind}",
        f"-DMASTER={master}",
        f"-DACTIVATION={activation}",
        f"-DDROPOUT={dropout}",
        f"-DOPTIMIZER={optimizer}",
    )
    assert compile_step("sm_90", *defines)


@needs_nvcc
@pytest.mark.slow
def test_python_and_the_kernels_agree_on_every_struct() -> None:
    checks = "".join(
        f'static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");\n'
        + "".join(
            f"static_assert(__builtin_offsetof({name}, {field}) == {getattr(kind, field).offset}, "
            f'"{name}.{field}");\n'
            for field, _ in kind._fields_
        )
        for name, kind in (
            ("Activation", structs.Activation),
            ("Head", structs.Head),
            ("Update", structs.Update),
        )
    )
    defines = ("-DT_FLOAT", "-DMASTER=0", "-DACTIVATION=0", "-DDROPOUT=0", "-DOPTIMIZER=0")
    assert compile_step("sm_90", *defines, source=checks)


def test_no_kernel_needs_a_header() -> None:
    text = kernel_source(*FILES)
    assert not re.search(r"^\s*#\s*include", text, re.MULTILINE)
