"""The kernels of a step compile for all architectures and in all variants."""

from __future__ import annotations

import ctypes
import re

import pytest

from pycuda_nn import layers
from pycuda_nn.backends.testing import FOCAL, HUBER
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import find_nvcc, kernel_source
from pycuda_nn.cuda.stack import DenseStack, recognise
from pycuda_nn.cuda.step import head
from pycuda_nn.cuda.step.sources import DATA_GRAD_FILES, HEAD_FILES, ORDER_FILES, STEP_FILES
from pycuda_nn.cuda.step.tilings import OPTIONS, TILINGS, Tiling
from pycuda_nn.expression.parse import FUNCTIONS
from pycuda_nn.network import Network

NVCC = find_nvcc()
KNOWN = NVCC.architectures() if NVCC else []
WANTED = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")
LOSSES = [loss.kernels.source for loss in layers.LOSSES.values() if loss.kernels]
FILES = (*STEP_FILES, *LOSSES, *ORDER_FILES, *HEAD_FILES)
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="this machine has no nvcc")


def compile_step(arch: str, *defines: str, source: str = "") -> bytes:
    assert NVCC is not None
    sizes = () if "-DHEAD_WIDTH" in " ".join(defines) else ("-DHEAD_WIDTH=48", "-DHEAD_CLASSES=7")
    options = ["-std=c++17", *sizes, *defines]
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
@pytest.mark.parametrize(("loss", "kind", "master"), [(HUBER, "FLOAT", 0), (FOCAL, "BFLOAT16", 1)])
def test_with_formulas(loss: str, kind: str, master: int) -> None:
    assert NVCC is not None
    every = " + ".join(f"{name}(x)" for name, (_, n) in FUNCTIONS.items() if n == 1)
    text = f"{every} + max(x, 1) + min(x, 2) + where(x < 1, x ** 3, x ** 0.5)"
    stack = recognise(Network.from_sizes((6, 5, 3), activation=text, loss=loss))
    assert isinstance(stack, DenseStack)
    source = stack.functions() + kernel_source(*STEP_FILES, stack.kernels.source)
    options = f"-std=c++17 -DT_{kind} -DMASTER={master} -DACTIVATION=3 -DDROPOUT=1 -DOPTIMIZER=0"
    assert NVCC.compile(source, "sm_90", [*options.split(), "-Werror", "all-warnings"])


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


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"{tiling.n} x{tiling.cluster}")
@pytest.mark.parametrize(
    ("kind", "activation"), [("BFLOAT16", "relu"), ("HALF", "tanh"), ("BFLOAT16", "x * sigmoid(x)")]
)
def test_the_data_gradient_compiles(tiling: Tiling, kind: str, activation: str) -> None:
    assert NVCC is not None
    stack = recognise(Network.from_sizes((8, 6, 3), activation=activation))
    assert isinstance(stack, DenseStack)
    number = stack.activation_number
    size, offset = ctypes.sizeof(structs.DataGrad), structs.DataGrad.outputs.offset
    checks = (
        f"static_assert(sizeof(Shared) == {tiling.shared_bytes()});\n"
        f"static_assert(sizeof(DataGrad) == {size});\n"
        f"static_assert(__builtin_offsetof(DataGrad, outputs) == {offset});"
    )
    options = ["-std=c++17", f"-DT_{kind}", f"-DACTIVATION={number}", *OPTIONS]
    source = stack.functions() + kernel_source(*DATA_GRAD_FILES) + checks
    options += ["-Werror", "all-warnings", *tiling.options()]
    assert NVCC.compile(source, "sm_90a", options)
    assert tiling.shared_bytes() <= 227 << 10


def test_no_kernel_needs_a_header() -> None:
    text = kernel_source(*FILES, *DATA_GRAD_FILES)
    assert not re.search(r"^\s*#\s*include", text, re.MULTILINE)


def fits(width: int, classes: int, item_bytes: int) -> bool:
    stack = recognise(Network.from_sizes((8, width, classes)))
    assert isinstance(stack, DenseStack)
    return head.fits(stack, item_bytes)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "item_bytes", "classes"), [("FLOAT", 4, 16), ("BFLOAT16", 2, 2)])
def test_the_widest_head_that_fits_compiles(kind: str, item_bytes: int, classes: int) -> None:
    width = max(width for width in range(16, 4097, 16) if fits(width, classes, item_bytes))
    master = {2: "-DMASTER=1", 4: "-DMASTER=0"}[item_bytes]
    defines = (f"-DT_{kind}", master, "-DACTIVATION=0", "-DDROPOUT=0", "-DOPTIMIZER=0")
    sizes = (f"-DHEAD_WIDTH={width}", f"-DHEAD_CLASSES={classes}")
    assert compile_step("sm_90", *defines, *sizes)


def test_a_head_is_no_wider_than_shared_memory() -> None:
    assert fits(1024, 2, 4)
    assert fits(1280, 2, 2)
    assert not fits(1600, 2, 4)
    assert not fits(2048, 2, 2)
