"""What follows a built-in product compiles in its variants, and its structs are those of Python."""

from __future__ import annotations

import ctypes

import pytest

from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.step.sources import STEP_FILES

NVCC = find_nvcc()
PRODUCT = ("cuda/gemm/device.cuh", "cuda/gemm/results.cuh", "cuda/gemm/sgemm.cuh")
FILES = (*STEP_FILES, *PRODUCT)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc"),
]


def compiled(
    epilogue: int, split: int, activation: int, dropout: int, optimizer: int, more: str = ""
) -> bytes:
    assert NVCC is not None
    values = {
        "ACTIVATION": activation, "DROPOUT": dropout, "OPTIMIZER": optimizer, "MASTER": 0,
        "EPILOGUE": epilogue, "TILE_M": 64, "TILE_N": 32, "SPLIT": split,
        "A_ALONG_K": 1, "B_ALONG_K": int(epilogue == 2),
    }  # fmt: skip
    options = [f"-D{name}={value}" for name, value in values.items()]
    options += ["-std=c++17", "-DT_FLOAT", "-DGRADIENT", "-Werror", "all-warnings"]
    return NVCC.compile(kernel_source(*FILES) + more, "sm_90", options)


@pytest.mark.parametrize(
    ("epilogue", "split", "activation", "dropout", "optimizer"),
    [(1, 4, 0, 1, 0), (1, 1, 1, 0, 2), (2, 7, 0, 1, 0), (2, 1, 2, 1, 1), (3, 1, 0, 0, 2),
     (3, 2, 0, 1, 0), (3, 4, 1, 0, 1)],
)  # fmt: skip
def test_every_variant(
    epilogue: int, split: int, activation: int, dropout: int, optimizer: int
) -> None:
    assert compiled(epilogue, split, activation, dropout, optimizer)


@pytest.mark.parametrize(
    ("epilogue", "kind"), [(1, structs.SgemmActivation), (3, structs.SgemmUpdate)]
)
def test_python_and_the_kernels_agree_on_every_struct(epilogue: int, kind: type) -> None:
    checks = "".join(
        f'static_assert(sizeof({name}) == {ctypes.sizeof(one)}, "{name}");\n'
        f'static_assert(__builtin_offsetof({name}, {field}) == {getattr(one, field).offset}, "");\n'
        for name, one, field in (
            ("Task", kind, "u"),
            ("Sgemm", structs.Sgemm, "beta"),
            ("Biases", structs.Biases, "end"),
        )
    )
    assert compiled(epilogue, 1, 0, 0, 0, checks)
