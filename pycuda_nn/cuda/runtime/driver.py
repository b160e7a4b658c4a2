"""Check for an NVIDIA driver with a GPU, without a package and without opening a context."""

from __future__ import annotations

import ctypes


def no_gpu() -> str | None:
    """Return why this machine has no usable GPU, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver on this machine (libcuda.so.1)"
    status = driver.cuInit(0)
    count = ctypes.c_int()
    if status or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return f"the NVIDIA driver finds no GPU (cuInit: {status}; check CUDA_VISIBLE_DEVICES)"
    return None


def count_gpus() -> int:
    """Return the number of GPUs of ``CUDA_VISIBLE_DEVICES``; 0 without a driver."""
    if no_gpu() is not None:
        return 0
    count = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))
    return count.value
