"""The GPUs of a host, and the file from which starters read them."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from sge_jobs.node.gpus import detect as gpus
from sge_jobs.node.gpus import inventory
from sge_jobs.node.gpus.inventory import Gpu, Inventory, decode, encode, read_cache, write_whole

SMI = """GPU 0: NVIDIA H200 (UUID: GPU-aaaaaaaa-1111-2222-3333-444444444444)
  MIG 3g.71gb     Device  0: (UUID: MIG-bbbbbbbb-1111-2222-3333-444444444444)
  MIG 3g.71gb     Device  1: (UUID: MIG-cccccccc-1111-2222-3333-444444444444)
GPU 1: NVIDIA H200 (UUID: GPU-dddddddd-1111-2222-3333-444444444444)
"""


def test_gpus_are_declared_by_count_or_uuid() -> None:
    found = gpus.parse_declared("# two\ncount = 2\n\nGPU-x  # the third\nGPU-x\n", "node1")
    assert [gpu.uuid for gpu in found] == ["GPU-node1-0", "GPU-node1-1", "GPU-x"]
    assert [gpu.index for gpu in found] == [0, 1, 2]


@pytest.mark.parametrize("line", ["count = two", "gpus = 2", "../../etc/passwd", "-rf", "a b"])
def test_a_declaration_that_is_none_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        gpus.parse_declared(f"count = 1\n{line}\n", "h")


def test_slices_stand_in_place_of_their_gpu() -> None:
    found = gpus.parse_smi_list(SMI)
    assert [(gpu.index, gpu.uuid[:12], gpu.name) for gpu in found] == [
        (0, "MIG-bbbbbbbb", "NVIDIA H200"),
        (1, "MIG-cccccccc", "NVIDIA H200"),
        (2, "GPU-dddddddd", "NVIDIA H200"),
    ]
    assert gpus.parse_smi_list("No devices were found\n") == []


def test_processes_on_gpus() -> None:
    text = "GPU-a, 12, /usr/bin/python3\nGPU-a, 13, /opt/a, b/c\n[N/A], x, y\nGPU-b, 14\n"
    found = gpus.parse_smi_processes(text)
    assert [(one.uuid, one.pid, one.name) for one in found] == [
        ("GPU-a", 12, "python3"),
        ("GPU-a", 13, "c"),
        ("GPU-b", 14, ""),
    ]


def test_a_process_with_a_quote_in_its_name_hides_no_other() -> None:
    text = 'GPU-a, 12, "x\nGPU-a, 13, /opt/"y\nGPU-b, 14, z\x85w\nGPU-b, \u00b2, x\n'
    found = gpus.parse_smi_processes(text)
    assert [(one.pid, one.name) for one in found] == [(12, '"x'), (13, '"y'), (14, "z\x85w")]


def test_a_name_with_a_line_end_makes_up_no_row() -> None:
    code = "import sys; open('/proc/self/comm', 'w').write('x\\nGPU-b,1,y'); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-uc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert gpus._name_of(process.pid) == "x GPU-b,1,y"
        process.communicate(b"\n")


def test_the_cache_is_read_as_written_and_only_in_the_same_boot(tmp_path: Path) -> None:
    path = str(tmp_path / "gpus")
    wanted = Inventory(
        source="nvml",
        gpus=[Gpu(index=0, uuid="GPU-a", name="NVIDIA H200"), Gpu(index=1, uuid="GPU-b")],
        per_slot=True,
        blocked={"GPU-b": [17, 4]},
    )
    write_whole(path, encode(wanted, "boot-1"))
    assert Path(path).stat().st_mode & 0o777 == 0o644
    found = read_cache(path, "boot-1")
    assert found is not None
    assert encode(found, "boot-1") == encode(wanted, "boot-1")
    assert read_cache(path, "boot-2") is None
    assert read_cache(str(tmp_path / "missing"), "boot-1") is None


def test_a_damaged_cache_is_none() -> None:
    text = encode(Inventory(source="nvml", gpus=[Gpu(index=0, uuid="GPU-a")]), "b")
    assert decode(text, "b") is not None
    for damaged in (
        "", text[:-5], text.replace("gpu 0", "gpu x"), text.replace("GPU-a", "../x"), "x" + text,
    ):  # fmt: skip
        assert decode(damaged, "b") is None


def test_no_name_of_a_gpu_leaves_its_directory() -> None:
    for name in ("", ".", "..", "a/b", "-x", "a\0", "a" * 101, "é"):
        assert not inventory.valid_uuid(name)


class FakeNvml(types.ModuleType):
    """NVML of a host with one GPU cut into slices and one whole."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.begun = 0
        self.fails = ""
        self.lost = -1
        self.slices = {0: ["MIG-a", "MIG-b"], 1: []}

    def __getattr__(self, name: str) -> object:
        if name.startswith("nvml"):
            return lambda *arguments: self._call(name.removeprefix("nvml"), *arguments)
        raise AttributeError(name)

    def _call(self, name: str, *arguments: object) -> object:
        if name == self.fails:
            raise self.NVMLError(name)
        if name in ("Init", "Shutdown"):
            self.begun += 1 if name == "Init" else -1
            return None
        assert self.begun == 1
        return getattr(self, f"_{name}")(*arguments)

    def _DeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def _DeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index == self.lost:
            raise self.NVMLError("GPU is lost")
        return index

    def _DeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"NVIDIA H200"

    def _DeviceGetMemoryInfo(self, handle: int | str) -> types.SimpleNamespace:  # noqa: N802
        if handle == "MIG-a":
            raise self.NVMLError("not supported")
        return types.SimpleNamespace(total=(len(str(handle)) << 30) + 1)

    def _DeviceGetUUID(self, handle: int | str) -> str:  # noqa: N802
        return handle if isinstance(handle, str) else f"GPU-{handle}"

    def _DeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        if handle == 1:
            raise self.NVMLError("not supported")
        return 1, 1

    def _DeviceGetMaxMigDeviceCount(self, handle: int) -> int:  # noqa: N802
        return 7

    def _DeviceGetMigDeviceHandleByIndex(self, handle: int, place: int) -> str:  # noqa: N802
        if place >= len(self.slices[handle]):
            raise self.NVMLError("not found")
        return self.slices[handle][place]

    def _DeviceGetComputeRunningProcesses(  # noqa: N802
        self, handle: int | str
    ) -> list[types.SimpleNamespace]:
        return [types.SimpleNamespace(pid=os.getpid())] if handle in (1, "MIG-b") else []


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setenv("PATH", "/nonexistent")
    return fake


def test_nvml_tells_slices_and_whole_gpus_and_is_left_again(nvml: FakeNvml) -> None:
    found = gpus.detect("/nonexistent")
    assert found.source == "nvml"
    assert found.uuids == ("MIG-a", "MIG-b", "GPU-1")
    assert [gpu.memory_mib for gpu in found.gpus] == [0, 5 << 10, 1 << 10]
    again = decode(encode(found, "b"), "b")
    assert again is not None
    assert [gpu.memory_mib for gpu in again.gpus] == [0, 5 << 10, 1 << 10]
    seen = [(one.uuid, one.pid, bool(one.name)) for one in gpus.processes()]
    assert seen == [("MIG-b", os.getpid(), True), ("GPU-1", os.getpid(), True)]
    assert nvml.begun == 0


@pytest.mark.parametrize("call", ["Init", "DeviceGetCount", "DeviceGetUUID"])
def test_a_failing_nvml_leaves_the_answer_to_nvidia_smi(
    nvml: FakeNvml, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.fails = call
    assert gpus.detect("/nonexistent").source == "none"
    assert gpus.processes() == []
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{SMI.splitlines()[3]}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = gpus.detect("/nonexistent")
    assert (found.source, found.uuids[0][:12]) == ("nvidia-smi", "GPU-dddddddd")
    assert nvml.begun == 0


def test_a_gpu_that_fell_off_the_bus_takes_no_other_with_it(
    nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.lost = 0
    found = gpus.detect("/nonexistent")
    assert [(gpu.index, gpu.uuid) for gpu in found.gpus] == [(1, "GPU-1")]
    assert [one.uuid for one in gpus.processes()] == ["GPU-1"]
    nvml.fails = "Init"
    tool = tmp_path / "nvidia-smi"
    words = "Unable to determine the device handle for GPU0000:17:00.0: Unknown Error"
    tool.write_text(f"#!/bin/sh\necho '{words}'; echo '{SMI.splitlines()[3]}'; exit 15\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [gpu.uuid[:12] for gpu in gpus.detect("/nonexistent").gpus] == ["GPU-dddddddd"]
