from __future__ import annotations

import re

import pytest

from pycuda_nn.bench.machine import check_pci, compiler_version, driver_version

PARAMS = "ResmanDebugLevel: 4294967295\nCheckPCIConfigSpace: 1\nModifyDeviceFiles: 1\n"
MODINFO = "filename: /lib/nvidia.ko\nparm:           NVreg_CheckPCIConfigSpace:int\n"


@pytest.mark.parametrize(
    ("params", "modinfo", "facts"),
    [
        (PARAMS, "", r"present, .*\b1$"),
        (PARAMS.replace(": 1\nM", ": 0\nM"), MODINFO, r"present, .*\b0$"),
        ("", MODINFO, "present$"),
        ("ResmanDebugLevel: 4294967295\n", "", "(?!present|.*/proc).* driver$"),
        ("", "parm: NVreg_EnableMSI:int\n", "(?!present|.*/proc).* driver$"),
        ("", "", r"(?!present).*/proc/driver/nvidia/params, .*modinfo nvidia\)$"),
    ],
)
def test_check_pci(params: str, modinfo: str, facts: str) -> None:
    assert re.match(facts, check_pci(params, modinfo))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
            "580.159.04",
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  331.38  Wed Jan  8\n", "331.38"),
        ("", "unknown"),
    ],
)
def test_driver_version(text: str, version: str) -> None:
    assert driver_version(text) == version


def test_compiler_version() -> None:
    assert compiler_version("Cuda compilation tools, release 13.0, V13.0.88\n") == "13.0.88"
    assert compiler_version("13.5") == "13.5"
    assert compiler_version("?") == "?"
