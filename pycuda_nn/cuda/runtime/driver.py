"""Whether the machine has an NVIDIA driver with a GPU; needs no package and opens no context."""

from __future__ import annotations

import ctypes


def no_gpu() -> str | None:
    """Return why no GPU can be used on this machine, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver on this machine (libcuda.so.1)"
    status = driver.cuInit(0)
    count = ctypes.c_int()
    if status or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return f"the NVIDIA driver shows no GPU (cuInit: {status}; see CUDA_VISIBLE_DEVICES)"
    return None
