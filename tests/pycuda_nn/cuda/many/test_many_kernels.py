"""The kernels of many networks compile in their variants, and their structs are those of Python."""

from __future__ import annotations

import ctypes

import pytest

from pycuda_nn.cuda.many import structs
from pycuda_nn.cuda.many.sources import FUSED_FILES, HEAD_FILES, MANY_FILES
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.runtime.structs import Head
from pycuda_nn.cuda.step.sources import ORDER_FILES, STEP_FILES

NVCC = find_nvcc()
pytestmark = [
    pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc"),
    pytest.mark.slow,
]
FILES = (*STEP_FILES, "layers/softmax.cuh", *ORDER_FILES, *MANY_FILES)
STRUCTS = {
    "Operands": structs.Operands,
    "ManyForward": structs.ManyProduct,
    "ManyGradient": structs.ManyProduct,
    "ManyWeights": structs.ManyWeights,
    "ManyBiases": structs.ManyBiases,
    "ManyUpdate": structs.ManyUpdate,
    "ManyActivation": structs.ManyActivation,
    "Head": Head,
}


def compiled(arch: str, *defines: str, files: tuple[str, ...] = FILES, checks: str = "") -> bytes:
    assert NVCC is not None
    options = ["-std=c++17", "-DGRADIENT", *defines]
    return NVCC.compile(kernel_source(*files) + checks, arch, options)


@pytest.mark.parametrize(
    ("arch", "defines"),
    [
        (
            "sm_80",
            "T_BFLOAT16 MASTER=1 ACTIVATION=0 DROPOUT=0 OPTIMIZER=0 MANY_ROWS=128 MANY_STAGES=4",
        ),
        ("sm_90", "T_HALF MASTER=2 ACTIVATION=1 DROPOUT=1 OPTIMIZER=2 MANY_ROWS=64 MANY_STAGES=5"),
    ],
)
def test_fused_products(arch: str, defines: str) -> None:
    checks = "".join(
        f'static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");\n'
        f"static_assert(__builtin_offsetof({name}, {kind._fields_[-1][0]}) == "
        f'{getattr(kind, kind._fields_[-1][0]).offset}, "{name}");\n'
        for name, kind in STRUCTS.items()
    )
    words = [f"-D{word}" for word in f"{defines} HEAD_WIDTH=256 HEAD_CLASSES=10".split()]
    assert compiled(arch, *words, files=(*FILES, *FUSED_FILES, *HEAD_FILES), checks=checks)


def test_float32() -> None:
    assert compiled(
        "sm_75", "-DT_FLOAT", "-DMASTER=0", "-DACTIVATION=2", "-DDROPOUT=0", "-DOPTIMIZER=1"
    )
