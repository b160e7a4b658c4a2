"""Compile CUDA C++ for one architecture with NVRTC or nvcc, through the cache on disk."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pycuda_nn.cuda.runtime import cache
from pycuda_nn.errors import KernelBuildError
from starmint import extra_command

_OPTIONS = ("-std=c++17",)
_NVCC_LIMIT_S = 300


class Compiler(ABC):
    """Compiles CUDA C++ for one architecture."""

    name: str

    @abstractmethod
    def version(self) -> str:
        """Return an identifier of the version."""

    @abstractmethod
    def compile(self, source: str, arch: str, options: Sequence[str]) -> bytes:
        """Return code for ``arch``, such as ``sm_90``, that the driver can load.

        Raises:
            KernelBuildError: The message of the compiler.
        """


class Nvcc(Compiler):
    """The compiler of the CUDA toolkit; it also needs a host compiler."""

    name = "nvcc"

    def __init__(self, path: str) -> None:
        self._path = path

    def version(self) -> str:
        """See :class:`Compiler`."""
        return _run([self._path, "--version"])

    def architectures(self) -> list[str]:
        """Return the supported architectures, such as ``sm_90``."""
        return _run([self._path, "--list-gpu-code"]).split()

    def compile(self, source: str, arch: str, options: Sequence[str]) -> bytes:
        """See :class:`Compiler`."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
            given.write_text(source)
            _run([self._path, "--cubin", f"-arch={arch}", *options, "-o", str(made), str(given)])
            return made.read_bytes()


class Nvrtc(Compiler):
    """The run-time compiler: a library that needs neither the toolkit nor a host compiler."""

    name = "NVRTC"

    def __init__(self) -> None:
        from cuda.bindings import nvrtc  # optional: imported only if it is used

        self._nvrtc = nvrtc
        self._version = self._checked(nvrtc.nvrtcVersion())

    def version(self) -> str:
        """See :class:`Compiler`."""
        return ".".join(map(str, self._version))

    def compile(self, source: str, arch: str, options: Sequence[str]) -> bytes:
        """See :class:`Compiler`."""
        nvrtc = self._nvrtc
        (program,) = self._checked(nvrtc.nvrtcCreateProgram(source.encode(), b"", 0, [], []))
        try:
            words = [word.encode() for word in (f"-arch={arch}", *options)]
            status = nvrtc.nvrtcCompileProgram(program, len(words), words)[0]
            if int(status):
                raise KernelBuildError(f"NVRTC: {self._log(program)}")
            (size,) = self._checked(nvrtc.nvrtcGetCUBINSize(program))
            code: bytes = bytes(size)  # the binding fills it in place
            self._checked(nvrtc.nvrtcGetCUBIN(program, code))
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        return code

    def _log(self, program: object) -> str:
        (size,) = self._checked(self._nvrtc.nvrtcGetProgramLogSize(program))
        text: bytes = bytes(size)
        self._checked(self._nvrtc.nvrtcGetProgramLog(program, text))
        return text.decode(errors="replace").strip("\0 \n")

    def _checked(self, answer: tuple[Any, ...]) -> tuple[Any, ...]:
        status, *values = answer
        if int(status):
            raise KernelBuildError(f"NVRTC: {status}")
        return tuple(values)


@functools.cache
def find_compiler() -> Compiler:
    """Return NVRTC, or nvcc if NVRTC is not installed.

    Raises:
        KernelBuildError: Neither is installed.
    """
    try:
        return Nvrtc()
    except (ImportError, RuntimeError, KernelBuildError):  # no package, or no library
        nvcc = find_nvcc()
    if nvcc is None:
        raise KernelBuildError(
            "no compiler for CUDA kernels: neither NVRTC nor nvcc was found",
            f"Add nvcc of the CUDA toolkit to PATH, or install NVRTC: {extra_command('gpu')}",
        )
    return nvcc


def find_nvcc() -> Nvcc | None:
    """Return nvcc in ``CUDA_HOME``, ``PATH`` or /usr/local/cuda."""
    places = (os.environ.get("CUDA_HOME"), None, "/usr/local/cuda")
    for place in places:
        path = shutil.which("nvcc", path=None if place is None else f"{place}/bin")
        if path is not None:
            return Nvcc(path)
    return None


def kernel_source(*names: str) -> str:
    """Return the concatenated text of these files of ``pycuda_nn``."""
    folder = resources.files("pycuda_nn")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@functools.cache
def all_kernels() -> str:
    """Return an identifier of this version of all kernels of ``pycuda_nn``."""
    folder = Path(str(resources.files("pycuda_nn")))
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.cuh"))
    return cache.key(*names, kernel_source(*names))


def build(
    source: str, arch: str, options: Sequence[str] = (), compiler: Compiler | None = None
) -> bytes:
    """Return ``source`` compiled for ``arch``, from the cache if possible.

    Raises:
        KernelBuildError: No compiler was found, or the compiler rejects the source.
    """
    chosen = compiler or find_compiler()
    words = (*_OPTIONS, *options)
    name = cache.key(chosen.name, chosen.version(), arch, *words, source) + ".cubin"
    code = cache.read(name)
    if code is None:
        code = cache.keep(name, chosen.compile(source, arch, words))
    return code


def _run(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_NVCC_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelBuildError(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise KernelBuildError(f"{argv[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
