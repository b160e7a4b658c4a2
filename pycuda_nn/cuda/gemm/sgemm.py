"""Kernels for float32 products with few results, for which cuBLASLt uses too few blocks.

They are timed together with the algorithms of cuBLASLt: a product uses one of them only if it is
the fastest.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.products import Product
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import build, kernel_source
from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.structs import Sgemm as Arguments

_THREADS = 256
_COMPILERS = 6  # concurrent compilations
_LEAST, _LEAST_SPLIT = (8, 0), (9, 0)  # compute capability of asynchronous copies; of clusters
_MOST_SUMS = 1 << 30  # m n k
_BLOCKS = (0.4, 2.0)  # fewest and most blocks per multiprocessor
_LEAST_K = 64  # smallest k of a block that shares its results with others


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Distribution of the results over blocks.

    Attributes:
        m, n: Rows and columns of a block.
        split: Blocks of a cluster, which share the sums of the same results.
    """

    m: int
    n: int
    split: int

    def blocks(self, m: int, n: int) -> tuple[int, int, int]:
        """Return the grid for results (m, n), row-major."""
        return -(-n // self.n), -(-m // self.m), self.split


# Of 21 tilings timed on an H200: those that are clearly the fastest for some product. The splits in
# 2 (wider tiles), 4 and 8 were added on an H100.
TILINGS = tuple(
    Tiling(m=m, n=n, split=split)
    for m, n, splits in ((32, 32, (1, 2, 4, 8)), (64, 32, (1, 2, 4, 7)), (64, 64, (1, 2, 4, 6)))
    for split in splits
)


def worth_a_try(product: Product, capability: tuple[int, int], multiprocessors: int) -> list[int]:
    """Return the indices in :data:`TILINGS` of the tilings that fill the GPU with ``product``."""
    if product.m * product.n * product.k > _MOST_SUMS:
        return []
    least, most = (share * multiprocessors for share in _BLOCKS)
    found = []
    for place, tiling in enumerate(TILINGS):
        x, y, z = tiling.blocks(product.n, product.m)
        if capability < (_LEAST_SPLIT if tiling.split > 1 else _LEAST):
            continue
        if product.k < _LEAST_K * tiling.split and tiling.split > 1:
            continue
        if least <= x * y * z <= most:
            found.append(place)
    return found


class Sgemm:
    """The kernels on one device; each is compiled at its first launch."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._source = kernel_source("cuda/runtime/common.cuh", "cuda/gemm/sgemm.cuh")
        self._modules: dict[tuple[str, ...], Module] = {}

    def version(self) -> str:
        """Return an identifier of this version of the kernels."""
        return cache.key(self._source, repr(TILINGS))[:16]

    def places(self, product: Product) -> list[int]:
        """Return the tilings to time for ``product``; compile them concurrently."""
        facts = self._device.facts
        found = worth_a_try(product, facts.compute_capability, facts.multiprocessors)
        options = [_options(product, place) for place in found]
        with ThreadPoolExecutor(_COMPILERS) as pool:  # fills the cache; a launch loads from it
            list(pool.map(lambda words: build(self._source, facts.arch, words), options))
        return found

    def launch(self, place: int, product: Product, b: int, stream: cuda.Stream) -> None:
        """Queue ``product`` on ``stream``, with B at ``b``."""
        p = product
        arguments = Arguments(
            a=b, b=p.a, d=p.d, bias=p.relu_bias,
            m=p.n, n=p.m, k=p.k, alpha=p.alpha, beta=p.beta,
        )  # fmt: skip
        grid = TILINGS[place].blocks(p.n, p.m)
        self._module(p, place).launch("sgemm", grid, _THREADS, stream, arguments)

    def _module(self, product: Product, place: int) -> Module:
        options = _options(product, place)
        if options not in self._modules:
            signatures = {"sgemm": Arguments}
            self._modules[options] = Module(self._device, self._source, signatures, options)
        return self._modules[options]


def _options(product: Product, place: int) -> tuple[str, ...]:
    """Return the compiler options of the kernel for ``product``."""
    tiling = TILINGS[place]
    return (
        "-DT_FLOAT",
        f"-DA_ALONG_K={int(not product.trans_b)}",
        f"-DB_ALONG_K={int(product.trans_a)}",
        f"-DTILE_M={tiling.m}",
        f"-DTILE_N={tiling.n}",
        f"-DSPLIT={tiling.split}",
    )
