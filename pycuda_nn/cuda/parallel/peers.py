"""Which GPUs can access each other's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuda.bindings import driver

from pycuda_nn.errors import DeviceError

_ALREADY = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED


def all_can_access(ordinals: Sequence[int]) -> bool:
    """Return whether every GPU can access the memory of every other one."""
    devices = [_checked(driver.cuDeviceGet(ordinal)) for ordinal in ordinals]
    return all(
        int(_checked(driver.cuDeviceCanAccessPeer(one, other)))
        for one in devices
        for other in devices
        if int(one) != int(other)
    )


def enable_access(ordinals: Sequence[int], own: int) -> None:
    """Let kernels of the active context, of GPU ``own``, access the memory of the others.

    Raises:
        DeviceError: The driver refuses.
    """
    for ordinal in ordinals:
        if ordinal == own:
            continue
        device = _checked(driver.cuDeviceGet(ordinal))
        context = _checked(driver.cuDevicePrimaryCtxRetain(device))
        try:
            status = int(driver.cuCtxEnablePeerAccess(context, 0)[0])
        finally:
            driver.cuDevicePrimaryCtxRelease(device)
        if status not in (0, _ALREADY):
            raise DeviceError(
                f"GPU {own} cannot access the memory of GPU {ordinal}: driver error {status}",
                "Use --exchange nccl, or train on one GPU: --gpus 1.",
            )


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if int(status):
        raise DeviceError(f"peer access: {status}")
    return values[0]
