"""Kernels for float32 products with few results, for which cuBLASLt uses too few blocks.

They are timed together with the algorithms of cuBLASLt: a product uses one of them only if it is
the fastest.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.epilogue import Epilogue, EpilogueCode
from pycuda_nn.cuda.gemm.products import Product
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import build, kernel_source
from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.structs import Sgemm as Arguments

FILES = ("cuda/gemm/device.cuh", "cuda/gemm/results.cuh", "cuda/gemm/sgemm.cuh")
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
        self._common = kernel_source("cuda/runtime/common.cuh")
        self._source = kernel_source(*FILES)
        self._modules: dict[tuple[str, ...], Module] = {}

    def version(self) -> str:
        """Return an identifier of this version of the kernels."""
        return cache.key(self._common, self._source, repr(TILINGS))[:16]

    def places(self, product: Product) -> list[int]:
        """Return the tilings to time for ``product``; compile them concurrently."""
        facts = self._device.facts
        found = worth_a_try(product, facts.compute_capability, facts.multiprocessors)
        self.compile((product, place, None) for place in found)
        return found

    def compile(self, wanted: Iterable[tuple[Product, int, EpilogueCode | None]]) -> None:
        """Compile kernels concurrently into the cache; a launch loads from it."""
        programs = {self._program(*one) for one in wanted}
        arch = self._device.facts.arch
        with ThreadPoolExecutor(_COMPILERS) as pool:
            list(pool.map(lambda program: build(program[0], arch, program[1]), programs))

    def launch(
        self,
        place: int,
        product: Product,
        b: int,
        stream: cuda.Stream,
        epilogue: Epilogue | None = None,
    ) -> None:
        """Queue ``product`` on ``stream``, with B at ``b``, and what follows it."""
        p = product
        arguments = Arguments(
            a=b, b=p.a, d=p.d, bias=p.relu_bias,
            m=p.n, n=p.m, k=p.k, alpha=p.alpha, beta=p.beta,
        )  # fmt: skip
        code = epilogue.code if epilogue else None
        if epilogue is not None:
            arguments = epilogue.code.argument(p=arguments, u=epilogue.arguments)
        grid = TILINGS[place].blocks(p.n, p.m)
        self._module(p, place, code).launch("sgemm", grid, _THREADS, stream, arguments)

    def _module(self, product: Product, place: int, code: EpilogueCode | None) -> Module:
        source, options = self._program(product, place, code)
        if options not in self._modules:
            signatures = {"sgemm": code.argument if code else Arguments}
            self._modules[options] = Module(self._device, source, signatures, options)
        return self._modules[options]

    def _program(
        self, product: Product, place: int, code: EpilogueCode | None
    ) -> tuple[str, tuple[str, ...]]:
        """Return the source of a kernel, and its compiler options."""
        before = code.source if code else self._common
        return f"{before}\n{self._source}", _options(product, place, code)


def parts_of(product: Product, place: int) -> int:
    """Return into how many parts a kernel divides the sum of a column of its results."""
    _, down, split = TILINGS[place].blocks(product.n, product.m)
    return down * split


def _options(product: Product, place: int, code: EpilogueCode | None) -> tuple[str, ...]:
    """Return the compiler options of the kernel for ``product``."""
    tiling = TILINGS[place]
    return (
        "-DT_FLOAT",
        f"-DA_ALONG_K={int(not product.trans_b)}",
        f"-DB_ALONG_K={int(product.trans_a)}",
        f"-DTILE_M={tiling.m}",
        f"-DTILE_N={tiling.n}",
        f"-DSPLIT={tiling.split}",
        f"-DEPILOGUE={code.number if code else 0}",
        *(code.options if code else ()),
    )
