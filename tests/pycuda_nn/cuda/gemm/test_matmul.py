"""Which algorithm stands for cuBLASLt alone, without a GPU."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest

from tests.pycuda_nn.cuda.step.recording import DRIVERS


@pytest.fixture
def gemms() -> Iterator[Any]:
    with patch.dict(sys.modules, {name: MagicMock() for name in DRIVERS}):
        made = importlib.import_module("pycuda_nn.cuda.gemm.matmul")
        gemms = object.__new__(made.Gemms)
        vars(gemms).update(_known={}, _offered=set())
        yield gemms


def algorithm(tiling: int | None) -> bytes:
    """Return an algorithm of cuBLASLt (None) or of a built-in kernel."""
    words = np.full(12, 7, np.uint64)
    words[11] = 0 if tiling is None else 1 + tiling
    return words.tobytes()


def test_the_fastest_of_cublaslt_replaces_a_built_in_kernel(gemms: Any) -> None:
    gemms._known["a product"] = [algorithm(each) for each in (4, None, 0, None)]
    assert [gemms.plain("a product", place) for place in range(4)] == [1, 1, 1, 3]
    gemms._known["no other"] = [algorithm(4), algorithm(0)]
    assert [gemms.plain("no other", place) for place in range(2)] == [0, 1]


def test_separate_kernels_replace_what_is_offered(gemms: Any) -> None:
    gemms.offer("+ slope", [b"\x00", b"\x01", b"\x02"])
    assert [gemms.plain("+ slope", place) for place in range(3)] == [0, 0, 0]
    assert gemms.algorithms("+ slope")[0] == b"\x00"
