"""Find the fastest algorithm of a matrix product: of cuBLASLt or, in float32, a built-in kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda
from nvmath.bindings import cublasLt

from pycuda_nn.cuda.gemm.epilogue import Epilogue, EpilogueCode
from pycuda_nn.cuda.gemm.products import Product
from pycuda_nn.cuda.gemm.sgemm import Sgemm, parts_of
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.runtime.graph import Graph
from pycuda_nn.cuda.runtime.precision import Precision
from pycuda_nn.cuda.runtime.stopwatch import Stopwatch
from pycuda_nn.errors import DeviceError

_R_32F, _R_16F, _R_16BF = 0, 2, 14  # cudaDataType
_COMPUTE_32F, _COMPUTE_TF32 = 68, 77  # cublasComputeType_t
_TYPES = {
    "float32": (_R_32F, _COMPUTE_32F),
    "tf32": (_R_32F, _COMPUTE_TF32),
    "fp16": (_R_16F, _COMPUTE_32F),
    "bf16": (_R_16BF, _COMPUTE_32F),
}
_CANDIDATES = 24
_WORKSPACE_BYTES = (1 << 20, 32 << 20)  # least and most; cuBLAS uses 32 MiB on an H100
_PARTIAL_RESULTS = 8  # the workspace holds this many float32 results of a product
_TUNE_REPEATS, _TUNE_ROUNDS = 10, 3
_TUNE_LIMIT_S = 1.0  # for each kind; the last proposals of cuBLASLt are rarely the fastest
_KEPT, _KEPT_OWN = 5, 2  # timed in the whole step, where the fifth fastest alone can be the best
_RESULT_WORDS, _ALGO_WORDS = 12, 8  # of cublasLtMatmulHeuristicResult_t, in 64-bit words
_OWN_WORD = 11  # reserved and 0 in cuBLASLt; 1 + index of the tiling for a built-in kernel


class Gemms:
    """Prepares matrix products for launch on one device.

    Args:
        tune: Time the candidates and store the fastest in the cache on disk. Otherwise use the
            first proposal of cuBLASLt, which depends only on the version of the library.
    """

    def __init__(self, device: Device, precision: Precision, *, tune: bool) -> None:
        try:
            self._handle = cublasLt.create()
        except cublasLt.cuBLASLtError as error:  # also if it cannot allocate memory
            raise DeviceError(
                f"cuBLASLt failed to start: {error}", "Check the GPU with nvidia-smi."
            ) from error
        self._type, self._compute = _TYPES[precision.name]
        self.tune = tune
        self.where = f"{device.facts.name} cuBLASLt {cublasLt.get_version()} {precision.name}"
        self._own: Sgemm | None = None
        if tune and precision.name == "float32":
            self._own = Sgemm(device)
            self.where += f" sgemm {self._own.version()}"
        self._known: dict[str, list[bytes]] = {}
        self._offered: set[str] = set()

    def workspace(self, memory: Memory, results: int) -> tuple[int, int]:
        """Allocate workspace for the products of one stream; return its address and size.

        Args:
            results: Elements of the largest product.
        """
        least, most = _WORKSPACE_BYTES
        size = min(max(4 * _PARTIAL_RESULTS * results, least), most)
        return memory.allocate(size, "the workspace of cuBLASLt"), size

    def ready(self, product: Product, workspace: tuple[int, int], stream: cuda.Stream) -> Gemm:
        """Return ``product`` with its algorithm.

        Tuning runs on ``stream`` and overwrites the result of ``product``.
        """
        gemm = Gemm(self._handle, product, self._type, self._compute, workspace, self._own)
        kind = gemm.kind()
        if kind not in self._known:
            self._known[kind] = self._find(gemm, kind, stream)
        gemm.use(self._known[kind][0])
        return gemm

    def algorithms(self, kind: str) -> list[bytes]:
        """Return a few algorithms for a kind of a ready product, fastest first, or as offered."""
        return self._known[kind]

    def offer(self, kind: str, algorithms: list[bytes]) -> None:
        """Set the algorithms of a kind that is not a product of this factory."""
        self._known[kind] = algorithms
        self._offered.add(kind)

    def plain(self, kind: str, place: int) -> int:
        """Return ``place`` of an algorithm, or that of cuBLASLt instead of a built-in kernel.

        The first algorithm that is offered for a kind stands for separate kernels.
        """
        if kind in self._offered:
            return 0
        own = [_own_place(np.frombuffer(one, np.uint64)) > 0 for one in self.algorithms(kind)]
        return own.index(False) if own[place] and False in own else place

    def compile(self, wanted: Iterable[tuple[Gemm, EpilogueCode]]) -> None:
        """Compile the built-in kernels among the algorithms of products, with what follows them."""
        if self._own is not None:
            self._own.compile(
                (gemm.product, place - 1, code)
                for gemm, code in wanted
                for algorithm in self.algorithms(gemm.kind())
                if (place := _own_place(np.frombuffer(algorithm, np.uint64)))
            )

    def _find(self, gemm: Gemm, kind: str, stream: cuda.Stream) -> list[bytes]:
        if not self.tune:
            return gemm.candidates()[:1]
        name, size = cache.key(self.where, kind) + ".algo", 8 * _RESULT_WORDS
        known = cache.read(name)
        if known is None:
            known = cache.keep(name, b"".join(_best(gemm.fastest(stream))))
        return [known[at : at + size] for at in range(0, len(known), size)]

    def close(self) -> None:
        """Destroy the handle."""
        cublasLt.destroy(self._handle)


class Gemm:
    """A product with its descriptors and its algorithm.

    Attributes:
        product: The product.
    """

    def __init__(
        self,
        handle: int,
        product: Product,
        kind: int,
        compute: int,
        workspace: tuple[int, int],
        own: Sgemm | None,
    ) -> None:
        self._handle, self.product, self._workspace = handle, product, workspace
        self._kind, self._compute, self._own = kind, compute, own
        self._scale = np.array([product.alpha, product.beta], np.float32)
        self._describe()
        self._algorithm = np.zeros(_RESULT_WORDS, np.uint64)

    def __call__(self, stream: cuda.Stream, b: int = 0) -> None:
        """Queue the product on ``stream``; ``b`` other than 0 is another address of B."""
        p, algorithm, scale = self.product, self._algorithm, self._scale.ctypes.data
        if self._own is not None and self.is_own:
            self._own.launch(_own_place(algorithm) - 1, p, b or p.b, stream)
            return
        cublasLt.matmul(
            self._handle, self._operation,
            scale, p.a, self._a, b or p.b, self._b,
            scale + 4, p.d, self._d, p.d, self._d,
            algorithm.ctypes.data, self._workspace[0], int(algorithm[_ALGO_WORDS]), stream.handle,
        )  # fmt: skip

    @property
    def is_own(self) -> bool:
        """Whether the algorithm is a built-in kernel, which can include what follows it."""
        return self._own is not None and _own_place(self._algorithm) > 0

    @property
    def parts(self) -> int:
        """Into how many parts a built-in kernel divides the sum of a column."""
        return parts_of(self.product, _own_place(self._algorithm) - 1)

    def launch_with(self, epilogue: Epilogue, stream: cuda.Stream) -> None:
        """Queue the product and what follows it as one built-in kernel on ``stream``."""
        place, p = _own_place(self._algorithm) - 1, self.product
        if self._own is not None:
            self._own.launch(place, p, p.b, stream, epilogue)

    def kind(self) -> str:
        """Return the properties that determine the speed of an algorithm."""
        p = self.product
        return (
            f"{p.m} {p.n} {p.k} {p.trans_a} {p.trans_b} {p.wide} "
            f"{p.beta != 0} {bool(p.relu_bias)} {self._workspace[1]}"
            + (f" {p.networks} {p.shared_b}" if p.networks > 1 else "")
        )

    def use(self, algorithm: bytes) -> None:
        """Use one of the :meth:`candidates` of this or of another product of the same kind."""
        self._algorithm = np.frombuffer(algorithm, np.uint64).copy()

    def fastest(self, stream: cuda.Stream) -> list[bytes]:
        """Return the candidates, fastest first, timed in a graph with the current data."""
        found = self.candidates() + self._own_candidates()
        if len(found) == 1:
            return found
        stopwatch = Stopwatch(runs=_TUNE_REPEATS, rounds=_TUNE_ROUNDS, limit_s=_TUNE_LIMIT_S)
        times = [self._time(candidate, stream, stopwatch) for candidate in found]
        return [found[place] for place in np.argsort(times, kind="stable")]

    def close(self) -> None:
        """Destroy the descriptors."""
        for layout in (self._a, self._b, self._d):
            cublasLt.matrix_layout_destroy(layout)
        cublasLt.matmul_desc_destroy(self._operation)

    def _describe(self) -> None:
        p, wide = self.product, _R_32F if self.product.wide else self._kind
        self._operation = cublasLt.matmul_desc_create(self._compute, _R_32F)
        name = cublasLt.MatmulDescAttribute
        self._set(name.TRANSA, int(p.trans_a), np.int32)
        self._set(name.TRANSB, int(p.trans_b), np.int32)
        if p.relu_bias:
            self._set(name.EPILOGUE, cublasLt.Epilogue.RELU_BIAS, np.int32)
            self._set(name.BIAS_POINTER, p.relu_bias, np.uint64)
            self._set(name.BIAS_DATA_TYPE, self._kind, np.int32)
        a = (p.k, p.m) if p.trans_a else (p.m, p.k)
        b = (p.n, p.k) if p.trans_b else (p.k, p.n)
        self._a = cublasLt.matrix_layout_create(self._kind, *a, a[0])
        self._b = cublasLt.matrix_layout_create(self._kind, *b, b[0])
        self._d = cublasLt.matrix_layout_create(wide, p.m, p.n, p.m)
        if p.networks > 1:
            strides = (p.m * p.k, 0 if p.shared_b else p.k * p.n, p.m * p.n)
            for layout, stride in zip((self._a, self._b, self._d), strides, strict=True):
                _repeat_matrix(layout, p.networks, stride)

    def _set(self, name: int, value: int, kind: Any) -> None:
        held = np.array([value], kind)
        cublasLt.matmul_desc_set_attribute(self._operation, name, held.ctypes.data, held.nbytes)

    def candidates(self) -> list[bytes]:
        """Return the algorithms of cuBLASLt that sum in a fixed order, best guess first.

        Raises:
            DeviceError: cuBLASLt has no algorithm for this product.
        """
        preference = cublasLt.matmul_preference_create()
        name, scheme = cublasLt.MatmulPreferenceAttribute, cublasLt.ReductionScheme
        # INPLACE adds in the order in which blocks finish.
        fixed = int(scheme.COMPUTE_TYPE) | int(scheme.OUTPUT_TYPE)
        for what, value, kind in (
            (name.MAX_WORKSPACE_BYTES, self._workspace[1], np.uint64),
            (name.REDUCTION_SCHEME_MASK, fixed, np.uint32),
        ):
            held = np.array([value], kind)
            cublasLt.matmul_preference_set_attribute(
                preference, what, held.ctypes.data, held.nbytes
            )
        results = np.zeros((_CANDIDATES, _RESULT_WORDS), np.uint64)
        found = np.zeros(1, np.int32)
        cublasLt.matmul_algo_get_heuristic(
            self._handle, self._operation, self._a, self._b, self._d, self._d, preference,
            _CANDIDATES, results.ctypes.data, found.ctypes.data,
        )  # fmt: skip
        cublasLt.matmul_preference_destroy(preference)
        good = [row.tobytes() for row in results[: found[0]] if not int(row[9]) & 0xFFFFFFFF]
        if not good:
            raise DeviceError(f"cuBLASLt has no algorithm for a product of {self.kind()}")
        return good

    def _own_candidates(self) -> list[bytes]:
        """Return the built-in kernels in the format of cuBLASLt's algorithms."""
        one = self.product.networks == 1
        places = self._own.places(self.product) if self._own and one else []
        results = np.zeros((len(places), _RESULT_WORDS), np.uint64)
        results[:, _OWN_WORD] = [1 + place for place in places]
        return [row.tobytes() for row in results]

    def _repeat(self, runs: int, stream: cuda.Stream) -> None:
        for _ in range(runs):
            self(stream)

    def _time(self, candidate: bytes, stream: cuda.Stream, stopwatch: Stopwatch) -> float:
        """Return the seconds of a product, infinite if the algorithm fails."""
        self.use(candidate)
        graphs: dict[int, Graph] = {}

        def timed(runs: int) -> float:
            if runs not in graphs:
                graphs[runs] = Graph(stream, lambda: self._repeat(runs, stream))
            return _timed(graphs[runs].launch, stream)

        try:
            return stopwatch.seconds(timed)
        except (cublasLt.cuBLASLtError, DeviceError):
            return float("inf")
        finally:
            for graph in graphs.values():
                graph.close()


def _own_place(algorithm: npt.NDArray[np.uint64]) -> int:
    """Return 1 + index of the tiling of a built-in kernel, 0 for cuBLASLt."""
    return int(algorithm[_OWN_WORD])


def _repeat_matrix(layout: int, count: int, stride: int) -> None:
    """Make a descriptor stand for ``count`` matrices, ``stride`` elements apart."""
    name = cublasLt.MatrixLayoutAttribute
    for what, value, kind in (
        (name.BATCH_COUNT, count, np.int32),
        (name.STRIDED_BATCH_OFFSET, stride, np.int64),
    ):
        held = np.array([value], kind)
        cublasLt.matrix_layout_set_attribute(layout, what, held.ctypes.data, held.nbytes)


def _best(ranked: list[bytes]) -> list[bytes]:
    """Return the first few algorithms of cuBLASLt and the first few built-in kernels, in order."""
    own = [_own_place(np.frombuffer(algorithm, np.uint64)) > 0 for algorithm in ranked]
    places = [[place for place, is_own in enumerate(own) if is_own == kind] for kind in (0, 1)]
    return [ranked[place] for place in sorted(places[0][:_KEPT] + places[1][:_KEPT_OWN])]


def _timed(run: Callable[[], object], stream: cuda.Stream) -> float:
    """Return the seconds of ``run`` on the GPU."""
    before, after = cuda.Event(), cuda.Event()
    before.record(stream)
    run()
    after.record(stream)
    after.synchronize()
    return float(after.time_since(before)) / 1e3
