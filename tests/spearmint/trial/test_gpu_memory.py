from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.trial.failure import failure_of
from spearmint.trial.gpu_memory import is_out_of_gpu_memory, last_gpu_memory_error

TORCH = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of "
    "which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.07 GiB in use."
)
TORCHRUN = """E1126 10:00:00 1 torch/distributed/elastic/api.py:984] failed (exitcode: 1)
Traceback (most recent call last):
  File "torch/distributed/launcher/api.py", line 300, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\x20
============================================================
train.py FAILED
  error_file: <N/A>
"""
GLOO = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1."
JAX = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 68719476736 bytes."


def raised(module: str, name: str, text: str, base: type = RuntimeError) -> Exception:
    """Return an exception of a class with this module and name."""
    return type(name, (base,), {"__module__": module})(text)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        raised("torch", "OutOfMemoryError", TORCH),
        raised("torch.cuda", "OutOfMemoryError", TORCH),
        RuntimeError(TORCH),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("HIP out of memory. Tried to allocate 2.00 GiB"),
        raised("pycuda._driver", "MemoryError", "cuMemAlloc failed: out of memory", Exception),
        raised("pycuda_nn.errors", "OutOfDeviceMemory", "not enough memory on the GPU", Exception),
        raised("cupy.cuda.memory", "OutOfMemoryError", "Out of memory allocating 1,024 bytes"),
        raised("jaxlib.xla_extension", "XlaRuntimeError", JAX),
        raised(
            "tensorflow.python.framework.errors_impl",
            "ResourceExhaustedError",
            "OOM when allocating tensor with shape[512,4096] on /job:localhost/device:GPU:0",
            Exception,
        ),
        caused(ValueError("training failed"), RuntimeError(TORCH)),
        raised("lightning", "MyError", TORCH, raised("torch", "OutOfMemoryError", "").__class__),
    ],
    ids=str,
)
def test_memory_of_a_gpu(error: Exception) -> None:
    assert is_out_of_gpu_memory(error)


def _while_handling() -> Exception:
    try:
        try:
            raise RuntimeError(TORCH)
        except RuntimeError:
            raise KeyError("batch")  # noqa: B904 - the mistake of a wrapper
    except KeyError as error:
        return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("CUDA out of memory"),
        raised("numpy._core", "_ArrayMemoryError", "Unable to allocate 8.00 GiB", MemoryError),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 8 GB"),
        raised("pycuda._driver", "MemoryError", "cuMemHostAlloc failed: out of memory", Exception),
        raised("pycuda_nn.errors", "OutOfHostMemory", "not enough memory on the host", Exception),
        raised("mine", "OutOfMemoryError", "the shelf is full"),
        RuntimeError("RESOURCE_EXHAUSTED: too many requests"),
        ValueError("batch"),
        _while_handling(),
        KeyboardInterrupt(TORCH),
    ],
    ids=repr,
)
def test_other_errors(error: BaseException) -> None:
    assert not is_out_of_gpu_memory(error)


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (f"epoch 1\nTraceback:\ntorch.OutOfMemoryError: {TORCH}\n", True),
        (f"RuntimeError: {TORCH}\nsrun: error: task 0: Exited with exit code 1\n", True),
        (f"jaxlib.xla_extension.XlaRuntimeError: {JAX}", True),
        (f"RuntimeError: {TORCH}\nretrying with batch=8\nKeyError: 'batch'\n", False),
        ("we handle CUDA out of memory here\n", False),
        ("MemoryError: Unable to allocate 8.00 GiB\n", False),
        (f"[rank1]: torch.OutOfMemoryError: {TORCH}\n" + TORCHRUN, True),
        (f"[rank1]: RuntimeError: {TORCH}\n[rank0]: RuntimeError: {GLOO}\n{TORCHRUN}", True),
        (f"[rank1]: RuntimeError: {TORCH}\n[rank0]: ValueError: batch\n", False),
        (f"RuntimeError: {TORCH}\nretrying\nTraceback:\nAssertionError\n", False),
        ("", False),
    ],
)
def test_the_last_error_of_an_output(output: str, found: bool) -> None:
    line = last_gpu_memory_error(output)
    assert bool(line) is found
    assert line in output or not found


class _WithoutText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_exception_whose_text_fails_is_a_failure(tmp_path: Path) -> None:
    assert "_WithoutText" in failure_of(_WithoutText(), tmp_path)["reason"]
