"""Launch the kernel of data_grad.cuh: a data gradient with the slope and the column sums."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.tensor_maps import BYTES, tensor_map
from pycuda_nn.cuda.layout import PaddedDense
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import build, kernel_source
from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.precision import Precision
from pycuda_nn.cuda.runtime.structs import Activation, DataGrad
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.sources import DATA_GRAD_FILES
from pycuda_nn.cuda.step.tilings import OPTIONS, TILE_M, TILINGS, Tiling

_THREADS, _WARP_ROWS = 384, 16
_FEATURE = "a"  # suffix of the architecture with these instructions


class DataGradKernel:
    """The kernel for one network, precision and tiling."""

    def __init__(self, module: Module, tiling: Tiling, precision: Precision, blocks: int) -> None:
        """Keep the loaded module; ``blocks`` are as many as the GPU has multiprocessors."""
        self._module, self._tiling, self._precision = module, tiling, precision
        self._blocks = blocks
        module.reserve("data_grad", tiling.shared_bytes())

    def arguments(
        self,
        at: int,
        layer: PaddedDense,
        u: Activation,
        *,
        delta: int,
        weights: int,
        below: int,
    ) -> DataGrad:
        """Return the arguments for ``u.rows`` rows, with ``u.h`` and ``u.partial``.

        Writes :data:`MAPS_BYTES` at the address ``at``, of which the last ones must be zeros.
        """
        of, rows = self._precision, u.rows
        share = self._tiling.n // self._tiling.cluster
        maps = (
            tensor_map(of, delta, rows, layer.outputs, TILE_M),
            tensor_map(of, weights, layer.inputs, layer.outputs, share),
            tensor_map(of, u.h, rows, layer.inputs, _WARP_ROWS),
            tensor_map(of, below, rows, layer.inputs, _WARP_ROWS),
        )
        cuda.memcpy_htod(at, b"".join(maps))
        return DataGrad(
            maps=at, counter=at + BYTES * len(maps), u=u, inputs=layer.inputs, outputs=layer.outputs
        )

    def launch(self, arguments: DataGrad, stream: cuda.Stream) -> None:
        """Queue the kernel on ``stream``."""
        tiling = self._tiling
        across = -(-arguments.inputs // tiling.n)
        tiles = across * -(-arguments.u.rows // (TILE_M * tiling.cluster))
        clusters = min(tiles, self._blocks // tiling.cluster)
        grid = (clusters * tiling.cluster, 1)
        self._module.launch("data_grad", grid, _THREADS, stream, arguments)


class DataGradKernels:
    """The kernels of all tilings for a plan; each is loaded at its first use."""

    def __init__(self, device: Device, plan: TrainingPlan) -> None:
        self._device, self._precision = device, plan.precision
        self._source = plan.stack.functions() + kernel_source(*DATA_GRAD_FILES)
        self._options = [
            f"-D{plan.precision.macro}",
            f"-DACTIVATION={plan.stack.activation_number}",
            *OPTIONS,
        ]
        self.version = cache.key(self._source, *self._options, repr(TILINGS))[:16]
        self._loaded: dict[int, DataGradKernel] = {}

    def kernel(self, place: int) -> DataGradKernel:
        """Return the kernel of the tiling at ``place``; the first call compiles all of them."""
        if not self._loaded:
            self._compile()
        if place not in self._loaded:
            tiling, signatures = TILINGS[place], {"data_grad": DataGrad}
            options = [*self._options, *tiling.options()]
            module = Module(self._device, self._source, signatures, options, feature=_FEATURE)
            blocks = self._device.facts.multiprocessors
            self._loaded[place] = DataGradKernel(module, tiling, self._precision, blocks)
        return self._loaded[place]

    def _compile(self) -> None:
        """Fill the cache on disk, concurrently."""
        arch = self._device.facts.arch + _FEATURE
        words = [[*self._options, *tiling.options()] for tiling in TILINGS]
        with ThreadPoolExecutor(len(TILINGS)) as pool:
            list(pool.map(lambda options: build(self._source, arch, options), words))
