"""How the GPUs of a host are connected: declared, by NVML, and by nvidia-smi."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from sge_jobs.node.gpus.detect import detect
from sge_jobs.node.gpus.inventory import Gpu, Inventory, decode, encode
from sge_jobs.node.gpus.links import Links
from sge_jobs.node.gpus.topology import find_links, parse_islands, parse_smi_topology

# Four GPUs on two sockets: bridges between 0 and 1 and between 2 and 3; underlined, with a NIC.
BRIDGES = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV4\tSYS\tSYS\tPIX\t0-31\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\tSYS\tNODE\t0-31\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tNV4\tSYS\t32-63\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tNV4\t X \tSYS\t32-63\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \t\t\t\n\n"
    "Legend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
)
# Without NVLink; GPU 1 has fallen off the bus.
CARDS = """\
        GPU0    GPU2    GPU3    GPU4    CPU Affinity    NUMA Affinity
GPU0     X      PIX     PHB     SYS     0-31            0
GPU2    PIX      X      NODE    SYS     0-31            0
GPU3    PHB     NODE     X      SYS     0-31            0
GPU4    SYS     SYS     SYS      X      32-63           1
"""
NUMBERS = {f"GPU{place}": f"GPU-{place}" for place in range(5)}


def test_the_table_of_nvidia_smi() -> None:
    found = parse_smi_topology(BRIDGES, NUMBERS)
    assert found.rows == {
        "GPU-0": "0144", "GPU-1": "1044", "GPU-2": "4401", "GPU-3": "4410",
    }  # fmt: skip
    found = parse_smi_topology(CARDS, NUMBERS)
    assert found.rows == {
        "GPU-0": "0234", "GPU-2": "2034", "GPU-3": "3304", "GPU-4": "4440",
    }  # fmt: skip
    assert found.choose(["GPU-0", "GPU-2", "GPU-3", "GPU-4"], 3) == ["GPU-0", "GPU-2", "GPU-3"]


@pytest.mark.parametrize(
    "text", ["", "\n", "Failed to initialize NVML: N/A\n", "GPU0\n", "GPU0 X\n"]
)
def test_text_without_a_table_tells_nothing(text: str) -> None:
    assert parse_smi_topology(text, NUMBERS).rows == {}


def test_islands_are_declared_by_index() -> None:
    uuids = ["a", "b", "c", "d", "e"]
    text = "count = 5\nisland = 0 2  # a bridge\nisland = 1 3 9\n"
    assert parse_islands(text, uuids).choose(["b", "c", "d", "e"], 2) == ["b", "d"]
    assert parse_islands("count = 5\n", uuids).rows == {}


def test_a_declaration_of_an_island_that_is_none_is_named(tmp_path: Path) -> None:
    declared = tmp_path / "gpus"
    for line in ("island = 0,1", "island = a b", "islands = 0 1"):
        declared.write_text(f"count = 2\n{line}\n")
        with pytest.raises(ValueError, match=line):
            detect(str(declared))


class FakeNvml(types.ModuleType):
    """NVML of a host with six GPUs: two islands of two, and two on one PCIe switch."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.is_open = False
        self.fails = ""

    def __getattr__(self, name: str) -> object:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: object) -> object:
            if name == self.fails:
                raise self.NVMLError(name)
            return getattr(self, f"_{name}")(*arguments)

        return call

    def _nvmlInit(self) -> None:  # noqa: N802
        self.is_open = True

    def _nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open = False

    def _nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 6

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def _nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "NVIDIA H200"

    def _nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def _nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        return 0, 0

    def _nvmlDeviceGetMemoryInfo(self, handle: int) -> types.SimpleNamespace:  # noqa: N802
        return types.SimpleNamespace(total=1 << 30)

    def _nvmlDeviceGetP2PStatus(self, one: int, other: int, kind: int) -> int:  # noqa: N802
        assert kind == 2
        return 0 if one // 2 == other // 2 < 2 else 5

    def _nvmlDeviceGetTopologyCommonAncestor(self, one: int, other: int) -> int:  # noqa: N802
        if one // 2 == other // 2:
            return 10
        return 40 if max(one, other) < 4 else 50


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setenv("PATH", "/nonexistent")
    return fake


def test_nvml_tells_nvlink_and_pcie(nvml: FakeNvml) -> None:
    known = detect("/nonexistent")
    links = find_links(known, "/nonexistent")
    assert list(links.rows.values()) == ["013344", "103344", "330144", "331044", "444402", "444420"]
    assert list(links.rows) == list(known.uuids)
    assert not nvml.is_open
    nvml.fails = "nvmlDeviceGetP2PStatus"  # an old driver
    assert find_links(known, "/nonexistent").rows["GPU-0"] == "023344"
    nvml.fails = "nvmlDeviceGetTopologyCommonAncestor"
    assert find_links(known, "/nonexistent").rows["GPU-0"] == "014444"
    for name in ("nvmlInit", "nvmlDeviceGetCount"):
        nvml.fails = name
        assert find_links(known, "/nonexistent").rows == {}
    assert not nvml.is_open


def test_declared_gpus_that_exist_have_the_links_of_the_driver(
    nvml: FakeNvml, tmp_path: Path
) -> None:
    declared = tmp_path / "gpus"
    declared.write_text("GPU-2\nGPU-3\nGPU-5\n")
    links = find_links(detect(str(declared)), str(declared))
    assert links.rows == {"GPU-2": "014", "GPU-3": "104", "GPU-5": "440"}


def test_without_nvml_nvidia_smi_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"GPU {place}: NVIDIA A40 (UUID: GPU-{place})" for place in range(4)]
    lines.insert(1, "Unable to determine the device handle for GPU0000:17:00.0: Unknown Error")
    (tmp_path / "list").write_text("\n".join(lines) + "\n")
    (tmp_path / "table").write_text(BRIDGES)
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        '#!/bin/sh\ncd "${0%/*}"\ncase $1 in -L) f=list;; topo) f=table;; *) exit 9;; esac\n'
        'while IFS= read -r line; do printf "%s\\n" "$line"; done < $f\n'
    )
    tool.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    known = detect("/nonexistent")
    assert known.source == "nvidia-smi"
    assert find_links(known, "/nonexistent").choose(list(known.uuids)[1:], 2) == ["GPU-2", "GPU-3"]


def test_links_are_written_and_read_and_others_ignored() -> None:
    gpus = [Gpu(index=place, uuid=uuid) for place, uuid in enumerate("ab")]
    links = Links({"a": "01", "b": "10"})
    text = encode(Inventory(source="nvml", gpus=gpus, links=links.rows), "boot")
    found = decode(text, "boot")
    assert found is not None
    assert found.links == links.rows
    for damaged in (text.replace("links b 10", "links b"), text.replace("links b 10\n", "")):
        found = decode(damaged, "boot")
        assert found is not None
        assert (found.uuids, Links(found.links).rows) == (("a", "b"), {})
