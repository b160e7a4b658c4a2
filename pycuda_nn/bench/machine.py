"""The machine of a benchmark: GPU, driver and versions."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Device

_PROC = Path("/proc/driver/nvidia")
PARAMETER = "CheckPCIConfigSpace"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """GPU and versions of a report.

    Attributes:
        driver: Version of the NVIDIA driver, such as 580.159.04, or ``unknown``.
        check_pci: State of the driver's parameter NVreg_CheckPCIConfigSpace.
    """

    gpu: str
    arch: str
    driver: str
    compiler: str
    pycuda: str
    check_pci: str

    def lines(self) -> list[str]:
        """Return the lines of text for a report."""
        return [
            f"{self.gpu} ({self.arch}), driver {self.driver}, {self.compiler}, "
            f"PyCUDA {self.pycuda}",
            f"NVreg_CheckPCIConfigSpace: {self.check_pci}",
        ]


def describe(device: Device) -> Machine:
    """Query the driver and the packages; a value that cannot be determined is ``unknown``."""
    from pycuda_nn.cuda.runtime.compiler import find_compiler

    compiler = find_compiler()
    return Machine(
        gpu=device.facts.name,
        arch=device.facts.arch,
        driver=driver_version(_text(_PROC / "version")),
        compiler=f"{compiler.name} {compiler_version(compiler.version())}",
        pycuda=importlib.metadata.version("pycuda"),
        check_pci=check_pci(_text(_PROC / "params"), _modinfo()),
    )


def package_version(*names: str) -> str | None:
    """Return the version of the first of these packages that is installed."""
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def driver_version(text: str) -> str:
    """Return the version in ``/proc/driver/nvidia/version``, or ``unknown``."""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.MULTILINE)
    return found[1] if found else "unknown"


def compiler_version(text: str) -> str:
    """Return the number in the version text of a compiler, or the text."""
    found = re.search(r"V(\d+\.\d+\.\d+)", text) or re.search(r"(\d+\.\d+)", text)
    return found[1] if found else text.strip()


def check_pci(params: str, modinfo: str) -> str:
    """Return whether the driver has NVreg_CheckPCIConfigSpace.

    In 2014 this parameter made Netflix's training 86 times slower.

    Args:
        params: Text of ``/proc/driver/nvidia/params``, or "" if the file is missing.
        modinfo: Output of ``modinfo nvidia``, or "" if the command fails.
    """
    value = re.search(rf"^{PARAMETER}: *(\S+)", params, re.MULTILINE)
    if value:
        return f"present, set to {value[1]}"
    if f"NVreg_{PARAMETER}:" in modinfo:
        return "present"
    if params or "NVreg_" in modinfo:
        return "not in this driver"
    return "unknown (no /proc/driver/nvidia/params, no modinfo nvidia)"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _modinfo() -> str:
    try:
        done = subprocess.run(
            ["modinfo", "nvidia"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
