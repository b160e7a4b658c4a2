"""The exchange by NCCL, for GPUs that cannot access each other's memory."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.layout import PaddedDense
from pycuda_nn.cuda.parallel.exchange import GradientExchange
from pycuda_nn.cuda.parallel.ranks import RankStopped
from pycuda_nn.cuda.parallel.room import THREADS
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.errors import DeviceError
from starmint import extra_command

_BLOCKS_A_MULTIPROCESSOR = 4
_IN_PROGRESS = 7  # ncclInProgress
_NETWORK = "Set NCCL_DEBUG=INFO to see why, and NCCL_SOCKET_IFNAME to the network of the hosts."


def communicators(ordinals: Sequence[int]) -> list[Any]:
    """Return an NCCL communicator for each GPU.

    Raises:
        DeviceError: NCCL is not installed, or cannot connect the GPUs.
    """
    with _loading("one GPU: --gpus 1"):
        from nccl.bindings import nccl
    try:
        return list(nccl.comm_init_all(len(ordinals), list(ordinals)))
    except Exception as error:
        raise DeviceError(
            f"NCCL cannot connect GPUs {', '.join(map(str, ordinals))}: {error}",
            "Set NCCL_DEBUG=INFO to see why; or train on one GPU: --gpus 1.",
        ) from error


def check_installed() -> None:
    """Raise DeviceError if NCCL cannot be loaded, before other hosts wait for this one."""
    with _loading("one host"):
        importlib.import_module("nccl.core")


def new_unique_id() -> bytes:
    """Return the bytes with which the ranks of several processes find each other.

    Raises:
        DeviceError: NCCL is not installed, or finds no network.
    """
    check_installed()
    from nccl.core import get_unique_id

    try:
        return bytes(get_unique_id())
    except Exception as error:
        raise DeviceError(f"NCCL cannot begin: {error}", _NETWORK) from error


def joined(unique_id: bytes, rank: int, size: int) -> Any:
    """Return the communicator of ``rank``; waits for all ranks. Its context must be active.

    Raises:
        DeviceError: NCCL is not installed, or cannot connect the ranks.
    """
    check_installed()
    from nccl.core import Communicator, UniqueId

    try:
        return Communicator.init(size, rank, UniqueId.from_bytes(unique_id))
    except Exception as error:
        raise DeviceError(
            f"NCCL cannot connect rank {rank} of {size}: {error}", _NETWORK
        ) from error


@contextlib.contextmanager
def _loading(otherwise: str) -> Iterator[None]:
    """Say how to install NCCL if an import fails; ``otherwise`` is what needs no NCCL."""
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # a failed program could block the multicast
    try:
        yield
    except (ImportError, RuntimeError, OSError) as error:  # no package, or no library
        raise DeviceError(
            f"these GPUs exchange gradients by NCCL, which cannot be loaded: {error}",
            f"Install it: {extra_command('gpu')}; or train on {otherwise}.",
        ) from error


class NcclExchange(GradientExchange):
    """All-reduce of gradients by NCCL; every rank then updates all weights."""

    name = "nccl"

    def __init__(self, *parts: Any, communicator: Any) -> None:
        """Use ``communicator``; the other arguments are those of :class:`GradientExchange`."""
        super().__init__(*parts)
        from nccl.bindings import nccl

        self._nccl, self._joined = nccl, communicator  # a Communicator of several processes
        self._communicator = communicator
        if hasattr(communicator, "ptr"):
            self._communicator = nccl.Comm(communicator.ptr)
        self._stream = cuda.Stream()
        kinds = nccl.DataType
        wide = self._weights.float_gradients
        self._kind = int(kinds.Float32 if wide else kinds.Bfloat16)
        self._float, self._sum = int(kinds.Float32), int(nccl.RedOp.Sum)

    def warm(self, layers: Sequence[PaddedDense]) -> None:
        """Reduce each layer once, so that NCCL connects the GPUs before a graph is recorded."""
        arena = self._weights.arena
        for number, layer in enumerate(layers):
            gradient = arena + self._weights.gradients
            gradient += self._weights.gradient_bytes * layer.weights
            sums = arena + self._weights.extra + self._room.sums[number]
            self._reduce(gradient, sums, layer.inputs * layer.outputs, layer.outputs)
        self._stream.synchronize()

    def queue_bias(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int,
        stream: cuda.Stream,
    ) -> None:  # fmt: skip
        """See :class:`GradientExchange`: :meth:`queue_weights` does both."""

    def queue_weights(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int,
        stream: cuda.Stream,
    ) -> None:  # fmt: skip
        """See :class:`GradientExchange`."""
        layer, x = context.layers[number], self.arguments(context, kernels, number, j, side)
        grid = (-(-layer.outputs // 32), 1)
        self._module.launch("bias_sums", grid, THREADS, stream, x)
        _join(stream, self._stream)
        self._reduce(x.gradients[0], x.sums[0], layer.inputs * layer.outputs, layer.outputs)
        most = _BLOCKS_A_MULTIPROCESSOR * context.multiprocessors
        blocks = max(1, min(most, -(-x.u.n // (8 * THREADS))))
        self._module.launch("apply", (blocks, 1), THREADS, self._stream, x)
        _join(self._stream, stream)

    def gathered(self, address: int, count: int) -> None:
        """Add ``count`` float64 at ``address`` over all ranks, and wait for the result."""
        if self._communicator is None:
            raise RankStopped
        double, handle = int(self._nccl.DataType.Float64), self._stream.handle
        self._nccl.all_reduce(
            address, address, count, double, self._sum, self._communicator, handle
        )
        self._stream.synchronize()

    def problem(self) -> str | None:
        """Return which failure NCCL has noticed, for example a host that was lost."""
        communicator = self._communicator
        if communicator is None:
            return None
        status = int(self._nccl.comm_get_async_error(communicator))
        if status in (0, _IN_PROGRESS):
            return None
        return str(self._nccl.get_error_string(status))

    def _reduce(self, gradient: int, sums: int, weights: int, outputs: int) -> None:
        nccl, handle = self._nccl, self._stream.handle
        nccl.group_start()
        for address, count, kind in (
            (gradient, weights, self._kind),
            (sums, outputs, self._float),
        ):
            nccl.all_reduce(address, address, count, kind, self._sum, self._communicator, handle)
        nccl.group_end()

    def stop(self) -> None:
        """See :class:`GradientExchange`."""
        communicator, self._communicator = self._communicator, None
        if communicator is not None:
            self._nccl.comm_abort(communicator)

    def close(self) -> None:
        """See :class:`GradientExchange`."""
        communicator, self._communicator = self._communicator, None
        if communicator is not None:
            self._nccl.comm_destroy(communicator)


def _join(before: cuda.Stream, after: cuda.Stream) -> None:
    event = cuda.Event(cuda.event_flags.DISABLE_TIMING)
    event.record(before)
    after.wait_for_event(event)
