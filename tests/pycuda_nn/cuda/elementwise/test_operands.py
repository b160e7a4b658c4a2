from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pycuda_nn.cuda.elementwise import operands
from pycuda_nn.cuda.elementwise.operands import (
    AT_ONCE,
    BLOCK,
    SINGLES,
    WIDE_SHARE,
    Chip,
    Sweep,
    addresses,
    sweep,
)
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.errors import ShapeError
from pycuda_nn.expression import Input, Scalar, program

FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Fake:
    ptr: int = 4096
    shape: tuple[int, ...] = (5, 3)
    dtype: Any = FLOAT32
    c_contiguous: bool = True

    @property
    def flags(self) -> Any:
        return SimpleNamespace(c_contiguous=self.c_contiguous)


CHIP = Chip(multiprocessors=100, l2_bytes=40_000_000)
OUT = Fake()
AXPY = program(Input("x") * Scalar("a") + Input("y"))


def test_addresses_and_count() -> None:
    values = {"y": Fake(ptr=8192), "x": OUT, "a": 2.0}
    assert addresses(AXPY, OUT, values) == (4096, [4096, 8192], 15)


class Empty(Fake):
    def __getattribute__(self, name: str) -> Any:
        if name == "ptr":
            raise AttributeError("'NoneType' object has no attribute '__int__'")
        return super().__getattribute__(name)


def test_an_empty_array_is_not_asked_for_its_address() -> None:
    empty = Empty(shape=(0, 3))
    found = addresses(AXPY, empty, {"x": empty, "y": empty, "a": 1.0})
    assert found == (0, [0, 0], 0)
    assert sweep(CHIP, *found) is None


@pytest.mark.parametrize(
    ("changed", "facts"),
    [
        ({"x": replace(OUT, dtype=np.dtype(np.float64))}, r"input 'x' .*\bfloat64\b.*\bfloat32\b"),
        ({"y": replace(OUT, shape=(3, 5))}, r"input 'y' .*\(3, 5\).*\(5, 3\)"),
        ({"y": replace(OUT, shape=(15,))}, r"input 'y' .*\(15,\).*\(5, 3\)"),
        ({"x": replace(OUT, c_contiguous=False)}, "input 'x' .*contiguous"),
        ({"x": np.zeros((5, 3), np.float32)}, r"input 'x' .*\bndarray\b"),
        ({"x": 1.0}, r"input 'x' .*\bfloat\b"),
        ({"z": OUT}, r"'z'\n.* x, y, a\."),
    ],
)
def test_operands_that_do_not_fit(changed: dict[str, Any], facts: str) -> None:
    with pytest.raises(ShapeError, match=facts):
        addresses(AXPY, OUT, {"x": OUT, "y": OUT, "a": 1.0} | changed)


def test_a_missing_input_and_a_bad_output() -> None:
    with pytest.raises(ShapeError, match="input 'y'"):
        addresses(AXPY, OUT, {"x": OUT, "a": 1.0})
    with pytest.raises(ShapeError, match=r"\bout .*\bint32\b"):
        addresses(AXPY, replace(OUT, dtype=np.dtype(np.int32)), {"x": OUT, "y": OUT, "a": 1.0})


def test_one_pack_a_thread_from_memory_and_in_one_wave_of_blocks() -> None:
    n = 4 * BLOCK * AT_ONCE * CHIP.multiprocessors + 3
    wave = Sweep(entry="narrow", blocks=AT_ONCE * 100, packs=n // 4, edges=3)
    assert sweep(CHIP, 4096, [4096], n) == wave
    n = int(WIDE_SHARE * CHIP.l2_bytes) // 4
    memory = Sweep(entry="narrow", blocks=-(-n // (4 * BLOCK)), packs=n // 4, edges=1)
    assert sweep(CHIP, 4096, [4096], n + 1) == memory


def test_data_in_the_cache_is_swept_by_the_blocks_that_run_at_once() -> None:
    wave = 4 * BLOCK * AT_ONCE * CHIP.multiprocessors
    half = Sweep(entry="wide", blocks=AT_ONCE * 50 + 1, packs=wave // 4 + 1)
    assert sweep(CHIP, 4096, [4096], wave + 4) == half
    n = int(WIDE_SHARE * CHIP.l2_bytes) // 4
    most = Sweep(entry="wide", blocks=AT_ONCE * 100, packs=n // 4)
    assert sweep(CHIP, 4096, [4096, 4096], n) == most
    far = 4096 + 16 * n
    assert sweep(CHIP, 4096, [far], n // 2).entry == "wide"
    assert sweep(CHIP, 4096, [far], n // 2 + 1).entry == "narrow", "the sweep uses two arrays"


def test_addresses_that_share_no_pack_are_swept_one_by_one() -> None:
    n = BLOCK * SINGLES
    assert sweep(CHIP, 4100, [1 << 30], n + 1) == Sweep(entry="single", blocks=2, packs=n + 1)


def test_the_kernels_and_this_file_agree() -> None:
    text = kernel_source("cuda/elementwise/elementwise.cuh")
    for name in ("BLOCK", "WIDE_PACKS", "SINGLES"):
        assert f"#define {name} {getattr(operands, name)}\n" in text


@pytest.mark.parametrize(
    ("address", "before", "packs", "edges"),
    [(0, 0, 25, 0), (4, 3, 24, 4), (8, 2, 24, 4), (12, 1, 24, 4)],
)
def test_what_stands_before_and_after_the_packs(
    address: int, before: int, packs: int, edges: int
) -> None:
    plan = sweep(CHIP, 4096 + address, [8192 + address], 100)
    assert plan == Sweep(entry="narrow", blocks=1, packs=packs, before=before, edges=edges)


def test_fewer_elements_than_stand_before_a_pack() -> None:
    only = Sweep(entry="narrow", blocks=1, packs=0, before=2, edges=2)
    assert sweep(CHIP, 4100, [4100], 2) == only


def test_more_than_two_to_the_31_elements() -> None:
    plan = sweep(CHIP, 4096, [4096], 2**40 + 1)
    assert plan is not None
    assert plan.packs == 2**38
    assert plan.blocks * BLOCK == 2**38


@pytest.mark.parametrize(
    ("out", "inputs", "count", "facts"),
    [
        (4096, [4097], 5, r" 0x1001 .*float32"),
        (0, [4096], 5, r" 0x0 .*float32"),
        (4096, [-4], 5, r" -0x4 .*float32"),
        (4096, [4096], -1, r" -1\b"),
        (4096, [4100], 5, r"0x1004 .*0x1000\b"),
        (4096, [4096, 4112], 5, r"0x1010 .*0x1000\b"),
        (4112, [4096], 5, r"0x1000 .*0x1010\b"),
    ],
)
def test_addresses_that_do_not_fit(out: int, inputs: list[int], count: int, facts: str) -> None:
    with pytest.raises(ShapeError, match=facts):
        sweep(CHIP, out, inputs, count)


def test_neighbours_do_not_overlap() -> None:
    assert sweep(CHIP, 4096, [4116, 4076], 5) is not None
