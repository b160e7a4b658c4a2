"""One GPU: its facts, its primary context and its memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pycuda.driver as cuda

from pycuda_nn.errors import BackendUnavailable, DeviceError, OutOfDeviceMemory


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts about a GPU for kernels and messages.

    Attributes:
        compute_capability: (major, minor), such as (9, 0).
        multiprocessors: Number of multiprocessors.
        shared_bytes: Largest dynamic shared memory of a block.
        l2_bytes: Size of the L2 cache.
    """

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int
    l2_bytes: int

    @property
    def arch(self) -> str:
        """Name of the architecture for a compiler, such as ``sm_90``."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"


class Device:
    """The primary context of one GPU, shared by all sessions of this process.

    It is the primary context because cuBLASLt and NCCL also use it.
    """

    def __init__(self, ordinal: int = 0) -> None:
        """Open GPU ``ordinal`` of ``CUDA_VISIBLE_DEVICES``.

        Raises:
            BackendUnavailable: The GPU does not exist, or another process has exclusive access.
        """
        self.ordinal = ordinal
        self._context = _primary_context(ordinal)
        self.facts = _facts(ordinal)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make the context current in this thread.

        Raises:
            DeviceError: The driver rejected an operation in the context, or the GPU failed.
        """
        self._context.push()
        try:
            yield
        except cuda.Error as error:
            raise DeviceError(
                f"GPU {self.ordinal}, {self.facts.name}: {error}",
                "Check nvidia-smi, and dmesg for NVRM. A training with --checkpoint continues "
                "with --resume.",
            ) from error
        finally:
            self._context.pop()

    def free_bytes(self) -> int:
        """Return the unused memory of the GPU; the context must be active."""
        return int(cuda.mem_get_info()[0])

    def synchronize(self) -> None:
        """Wait for all queued work; the context must be active."""
        self._context.synchronize()


class Memory:
    """Allocations that are freed together, with a clear error if there is not enough memory.

    Args:
        limit_bytes: Allocate at most this; None for all memory of the GPU.
    """

    def __init__(self, device: Device, limit_bytes: int | None = None) -> None:
        self._device, self._limit = device, limit_bytes
        self._held: list[cuda.DeviceAllocation] = []
        self.used_bytes = 0

    def available_bytes(self) -> int:
        """Return the memory that can still be allocated."""
        free = self._device.free_bytes()
        return free if self._limit is None else min(free, self._limit - self.used_bytes)

    def allocate(self, n_bytes: int, what: str) -> int:
        """Return the address of ``n_bytes`` zero bytes, aligned to 256.

        Raises:
            OutOfDeviceMemory: There is not enough memory; the message names ``what``.
        """
        wanted = max(n_bytes, 256)
        if self._limit is not None and self.used_bytes + wanted > self._limit:
            raise OutOfDeviceMemory(what, wanted, self.available_bytes(), limited=True)
        try:
            held = cuda.mem_alloc(wanted)
        except cuda.MemoryError as error:
            raise OutOfDeviceMemory(what, wanted, self.available_bytes(), limited=False) from error
        cuda.memset_d8(held, 0, wanted)
        self._held.append(held)
        self.used_bytes += wanted
        return int(held)

    @contextlib.contextmanager
    def borrowed(self, n_bytes: int, what: str) -> Iterator[int]:
        """Allocate ``n_bytes`` temporarily, without regard to the limit.

        Raises:
            OutOfDeviceMemory: The GPU does not have enough memory.
        """
        try:
            held = cuda.mem_alloc(n_bytes)
        except cuda.MemoryError as error:
            free = self._device.free_bytes()
            raise OutOfDeviceMemory(what, n_bytes, free, limited=False) from error
        try:
            yield int(held)
        finally:
            held.free()

    def free(self) -> None:
        """Free all allocations."""
        while self._held:
            self._held.pop().free()
        self.used_bytes = 0


def gpu_name(ordinal: int) -> str:
    """Return the model of a GPU, without opening it; empty if there is no such GPU."""
    try:
        cuda.init()
        return str(cuda.Device(ordinal).name())
    except cuda.Error:
        return ""


class _Contexts(threading.local):
    """The primary contexts that this thread uses; PyCUDA's objects are bound to a thread."""

    def __init__(self) -> None:
        self.by_ordinal: dict[int, cuda.Context] = {}


_CONTEXTS = _Contexts()


def _primary_context(ordinal: int) -> cuda.Context:
    if ordinal not in _CONTEXTS.by_ordinal:
        _CONTEXTS.by_ordinal[ordinal] = _retained(ordinal)
    return _CONTEXTS.by_ordinal[ordinal]


def _retained(ordinal: int) -> cuda.Context:
    try:
        cuda.init()
        count = cuda.Device.count()
        if not 0 <= ordinal < count:
            seen = "1 GPU" if count == 1 else f"{count} GPUs"
            raise BackendUnavailable(
                f"--device {ordinal} does not exist: this process sees {seen}, counted from 0",
                "Check CUDA_VISIBLE_DEVICES.",
            )
        return cuda.Device(ordinal).retain_primary_context()
    except cuda.Error as error:
        raise BackendUnavailable(
            f"GPU {ordinal} cannot be used: {error}",
            "Check nvidia-smi: in compute mode EXCLUSIVE_PROCESS only one process can use a GPU.",
        ) from error


def _facts(ordinal: int) -> Facts:
    device, attribute = cuda.Device(ordinal), cuda.device_attribute
    return Facts(
        name=device.name(),
        compute_capability=device.compute_capability(),
        multiprocessors=device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
        shared_bytes=device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        l2_bytes=device.get_attribute(attribute.L2_CACHE_SIZE),
    )
