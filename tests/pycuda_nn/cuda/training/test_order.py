"""The kernels of the order of an epoch, compiled for the CPU: see tiny/emulator.h."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.step.sources import ORDER_FILES
from pycuda_nn.rng import Purpose, Stream, epoch_order
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers

Array = npt.NDArray[Any]
_HERE = Path(__file__).parent
_EMULATOR = _HERE.parent / "tiny" / "emulator.h"
SMALL, APART, SORT, SCAN, DRAW = 64, 8, 32, 32, 32  # smaller than on a GPU: more buckets and rounds


def _source() -> str:
    text = kernel_source("cuda/runtime/philox.cuh", *ORDER_FILES)
    for old, new in (
        ("TILE = 2048", f"TILE = {SMALL}"),
        ("SORT_THREADS = 256", f"SORT_THREADS = {SORT}"),
        ("SCAN_THREADS = 1024", f"SCAN_THREADS = {SCAN}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    shared = r"__shared__ ([\w ]+) (\w+)((?:\[\w+\])+);"
    text, found = re.subn(shared, r"auto& \2 = emulator::shared<\1\3>(__LINE__);", text)
    assert found == 3
    around = (_HERE / "order.cc").read_text()
    return _EMULATOR.read_text() + around.replace("// KERNELS", text)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("order")
    (folder / "order.cc").write_text(_source())
    flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC"]
    command = ["g++", *flags, "-o", str(folder / "order.so"), str(folder / "order.cc")]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(folder / "order.so"))
    loaded.order_of.restype = ctypes.c_bool
    return loaded


def drawn_orders(
    library: Any, n: int, buckets: int, orders: list[tuple[int, int]], seed: int = 0
) -> Array:
    """Return the order of each (seed, epoch), (networks, n)."""
    slots, networks = -(-n // 4) * 4, len(orders)
    places = np.zeros(networks * buckets * APART, dtype=np.int32)
    unsorted, rows = np.full((2, networks, slots), -1, dtype=np.int32)
    drawn = np.array(orders, dtype=np.uint64)
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (places, unsorted, rows, drawn)]
    purpose = ctypes.c_ulonglong(int(Purpose.ORDER))
    assert library.order_of(*pointers, purpose, n, buckets, slots, networks, seed, DRAW)
    return rows[:, :n]


@pytest.mark.parametrize(
    ("n", "buckets"),
    [(1, 1), (2, 1), (3, 1), (63, 1), (64, 1), (65, 3), (200, 7), (1001, 40)],  # 40: two scans
    ids=str,
)
def test_the_order_is_that_of_the_host(library: Any, n: int, buckets: int) -> None:
    for seed, epoch in ((0, 0), (2**63 + 7, 12)):
        (got,) = drawn_orders(library, n, buckets, [(seed, epoch)], seed=epoch)
        np.testing.assert_array_equal(got, epoch_order(n, seed, epoch))


def test_each_network_has_its_order(library: Any) -> None:
    orders = [(1, 0), (1, 5), (2, 0)]
    for n, buckets in ((50, 1), (301, 11)):
        found = drawn_orders(library, n, buckets, orders)
        for got, (seed, epoch) in zip(found, orders, strict=True):
            np.testing.assert_array_equal(got, epoch_order(n, seed, epoch))


def test_a_bucket_that_is_larger_than_expected_is_sorted_too(library: Any) -> None:
    """Two buckets of about 150 rows, of which 64 fit into shared memory."""
    (got,) = drawn_orders(library, 301, 2, [(3, 1)])
    np.testing.assert_array_equal(got, epoch_order(301, 3, 1))


@pytest.mark.parametrize("n", [2049, 10_000, 1 << 18])
def test_buckets_are_small_enough(n: int) -> None:
    with faked_drivers():
        from pycuda_nn.cuda.training.order import TILE, buckets_of

        buckets = buckets_of(n)
    words = Stream(7, Purpose.ORDER).words(n)
    of_rows = [(int(word) * buckets) >> 64 for word in words]
    assert np.bincount(of_rows, minlength=buckets).max() <= TILE // 2
