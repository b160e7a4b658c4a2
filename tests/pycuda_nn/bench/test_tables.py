from __future__ import annotations

import re
from dataclasses import replace

from pycuda_nn.bench.machine import Machine
from pycuda_nn.bench.tables import (
    MIB,
    KernelReport,
    KernelRow,
    MulcReport,
    MulcRow,
    kernel_table,
    mulc_table,
)

MACHINE = Machine(
    gpu="A GPU", arch="sm_90", driver="580.1", compiler="NVRTC 13.0", pycuda="2026.1",
    check_pci="not in this driver",
)  # fmt: skip
ROW = MulcRow(
    size=1000, calls=5000, mulc=1e-6, npp_mulc=2e-6, mulc_graph=1e-6, npp_mulc_graph=1.5e-6,
    fused=2e-6, npp_chain=9e-6, fused_graph=1e-6, npp_chain_graph=5e-6,
)  # fmt: skip


def test_mulc_table_shows_today_beside_2014() -> None:
    text = mulc_table(MulcReport(machine=MACHINE, npp="13.2.0", rows=(ROW,)))
    assert "A GPU (sm_90), driver 580.1, NVRTC 13.0, PyCUDA 2026.1" in text
    assert "NVreg_CheckPCIConfigSpace: not in this driver" in text
    (row,) = (line for line in text.splitlines() if line.startswith("       1,000"))
    assert row.split() == [
        "1,000", "0.128", "0.256", "2.00x", "0.256", "1.152", "4.50x",
        "0.128", "0.192", "1.50x", "0.128", "0.640", "5.00x",
    ]  # fmt: skip
    assert "g2.2xlarge NPP           299.23     3.48" in text


def test_mulc_table_without_npp() -> None:
    none = replace(ROW, npp_mulc=None, npp_mulc_graph=None, npp_chain=None, npp_chain_graph=None)
    text = mulc_table(MulcReport(machine=MACHINE, npp=None, rows=(none,)))
    assert "libnpps" in text
    (row,) = (line for line in text.splitlines() if line.startswith("       1,000"))
    assert row.split() == ["1,000", "0.128", "-", "0.256", "-", "0.128", "-", "0.128", "-"]


def test_kernel_table_has_a_row_an_operation_and_a_column_a_size() -> None:
    rows = tuple(
        KernelRow(
            operation=name, array_bytes=mib * MIB, in_place=in_place, gb_s=gb_s, copy_gb_s=4000
        )
        for name, gb_s in (("mulc", 3900), ("exp", 3000))
        for mib in (1, 64)
        for in_place in (True, False)
    )
    lines = kernel_table(KernelReport(machine=MACHINE, rows=rows)).splitlines()
    assert re.match(r"GB/s .*\bin place$", lines[3])
    assert lines[4:7] == [
        "MiB an array               1            64",
        "mulc             3,900   98%   3,900   98%",
        "exp              3,000   75%   3,000   75%",
    ]
    assert re.match(r"GB/s .*\bout of place$", lines[8])
