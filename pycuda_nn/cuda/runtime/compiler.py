"""From CUDA C++ to code for one architecture, by NVRTC or nvcc, kept in the cache on disk."""

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

_OPTIONS = ("-std=c++17",)
_NVCC_LIMIT_S = 300


class Compiler(ABC):
    """Turns CUDA C++ into code for one architecture."""

    name: str

    @abstractmethod
    def version(self) -> str:
        """Return what tells one version from another."""

    @abstractmethod
    def compile(self, source: str, arch: str, options: Sequence[str]) -> bytes:
        """Return code for ``arch``, such as ``sm_90``, that the driver can load.

        Raises:
            KernelBuildError: In the compiler's words.
        """


class Nvcc(Compiler):
    """The toolkit's compiler; it needs a host compiler as well."""

    name = "nvcc"

    def __init__(self, path: str) -> None:
        self._path = path

    def version(self) -> str:
        """See :class:`Compiler`."""
        return _run([self._path, "--version"])

    def architectures(self) -> list[str]:
        """Return what it can compile for, such as ``sm_90``."""
        return _run([self._path, "--list-gpu-code"]).split()

    def compile(self, source: str, arch: str, options: Sequence[str]) -> bytes:
        """See :class:`Compiler`."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
            given.write_text(source)
            _run([self._path, "--cubin", f"-arch={arch}", *options, "-o", str(made), str(given)])
            return made.read_bytes()


class Nvrtc(Compiler):
    """The run-time compiler: a library, no toolkit and no host compiler."""

    name = "NVRTC"

    def __init__(self) -> None:
        from cuda.bindings import nvrtc  # a door, opened only where it is used

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
            code: bytes = bytes(size)  # filled in place, as the binding wants it
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
    """Return NVRTC, or else nvcc.

    Raises:
        KernelBuildError: There is neither.
    """
    try:
        return Nvrtc()
    except (ImportError, RuntimeError, KernelBuildError):  # no package, or no library
        nvcc = find_nvcc()
    if nvcc is None:
        raise KernelBuildError(
            "no compiler for CUDA kernels: neither NVRTC nor nvcc",
            "Install one: pip install 'starmint[gpu]', or put the CUDA toolkit's nvcc on PATH.",
        )
    return nvcc


def find_nvcc() -> Nvcc | None:
    """Return the compiler of ``CUDA_HOME``, of ``PATH`` or of /usr/local/cuda."""
    places = (os.environ.get("CUDA_HOME"), None, "/usr/local/cuda")
    for place in places:
        path = shutil.which("nvcc", path=None if place is None else f"{place}/bin")
        if path is not None:
            return Nvcc(path)
    return None


def kernel_source(*names: str) -> str:
    """Return the text of these files of ``pycuda_nn``, one after the other."""
    folder = resources.files("pycuda_nn")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def build(
    source: str, arch: str, options: Sequence[str] = (), compiler: Compiler | None = None
) -> bytes:
    """Return ``source`` compiled for ``arch``, from the cache where it is there.

    Raises:
        KernelBuildError: There is no compiler, or it does not take the source.
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
