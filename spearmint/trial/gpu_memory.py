"""Recognise that a trial ran out of GPU memory; only the standard library."""

from __future__ import annotations

import re

OUT_OF_MEMORY = "out_of_gpu_memory"
"""Key of result.json: the trial ran out of GPU memory, so its parameters are infeasible."""

ANOTHER_DIED = re.compile(
    r"Connection (closed|reset)|Broken pipe|NCCL|Gloo|gloo|DistNetworkError|DistStoreError"
)
"""What a rank of a trial in several processes says when another one has died."""

# Packages whose exceptions of these names are about GPU memory, by their text. Their allocators of
# host memory raise MemoryError or other texts.
_CLASSES = {
    "OutOfMemoryError": ("torch", "cupy"),
    "MemoryError": ("pycuda",),
    "OutOfDeviceMemory": ("pycuda_nn",),
    "ResourceExhaustedError": ("tensorflow",),
}
_HOST = re.compile(r"\bhost\b|cuMemHost|cuMemAllocHost|CPUAllocator|/cpu:|CpuDevice", re.IGNORECASE)
# Texts by which frameworks report it in exceptions of other classes, and in their output.
_TEXT = re.compile(
    r"CUDA out of memory|HIP out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
    r"|cuMemAlloc\w* failed: out of memory"
    r"|RESOURCE_EXHAUSTED: (?:Out of memory|.*OOM when allocating)"
)
# PyTorch puts the rank before each line if there are several processes.
_LINE = re.compile(
    r"^(?P<rank>\[rank\d+\]: ?)?(?P<error>[\w.]+(?:Error|Exception)(?:: (?P<text>.*))?)$"
)


def is_out_of_gpu_memory(error: BaseException) -> bool:
    """Return whether ``error``, or the error that it was raised from, is about GPU memory.

    False for a MemoryError of Python and numpy, which is about memory of the host.
    """
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if _is_about_gpu(found):
            return True
        found = found.__cause__
    return False


def _is_about_gpu(error: BaseException) -> bool:
    classes = type(error).__mro__
    text = _text_of(error)
    if _HOST.search(text.partition("\n")[0]):
        return False
    for each in classes:
        package = each.__module__.partition(".")[0]
        if package in _CLASSES.get(each.__name__, ()):
            return True
    if isinstance(error, MemoryError):
        return False
    return isinstance(error, Exception) and bool(_TEXT.search(text))


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it is code of the user
        return ""


def last_gpu_memory_error(output: str) -> str:
    """Return the last line of ``output`` that reports an exception, if it is about GPU memory.

    Empty if the last exception is about something else, or if there is none. Exceptions of ranks
    that only lost another rank do not count.
    """
    for line in reversed(output.splitlines()):
        if match := _LINE.match(line.strip()):
            found, text = match["error"], match["text"] or ""
            if match["rank"] and ANOTHER_DIED.search(found) and not _TEXT.search(text):
                continue
            about = _TEXT.search(text) and not _HOST.search(text)
            return found if about and not found.startswith("MemoryError") else ""
    return ""
