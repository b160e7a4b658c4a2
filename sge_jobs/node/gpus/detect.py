"""Find the GPUs of this host: from a file, otherwise with NVML, otherwise with ``nvidia-smi``."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

from sge_jobs.node.gpus.inventory import DECLARED, Gpu, Inventory, read_text, valid_uuid
from sge_jobs.node.queries import QueryFailed, ask

_SMI_TIMEOUT_S = 30.0
_MAX_MIG = 16


class GpuProcess:
    """A process that computes on a GPU."""

    __slots__ = ("name", "pid", "uuid")

    def __init__(self, *, uuid: str, pid: int, name: str) -> None:
        self.uuid = uuid
        self.pid = pid
        self.name = name


def detect(declared: str = DECLARED) -> Inventory:
    """Return the GPUs of this host; ``source`` is ``none`` if there are none."""
    try:
        return Inventory(source="declared", gpus=parse_declared(read_text(declared), _host()))
    except OSError:
        pass
    for source, find in (("nvml", _by_nvml), ("nvidia-smi", _by_smi)):
        gpus = find()
        if gpus:
            return Inventory(source=source, gpus=gpus)
    return Inventory(source="none", gpus=())


def parse_declared(text: str, host: str) -> list[Gpu]:
    """Return the GPUs that a file declares: one UUID per line, or ``count = N`` for invented UUIDs.

    A line ``island = 0 1`` says that GPUs with these indices are connected by NVLink.

    Raises:
        ValueError: A line is invalid.
    """
    uuids: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        key, mark, value = (part.strip() for part in words.partition("="))
        if not words:
            continue
        if mark and key == "count" and value.isdigit():
            uuids += [f"GPU-{host}-{place}" for place in range(int(value))]
        elif mark and key == "island" and all(map(str.isdigit, value.split())):
            continue  # see topology.parse_islands
        elif valid_uuid(words):
            uuids.append(words)
        else:
            expected = "a UUID, 'count = N' or 'island = 0 1'"
            raise ValueError(f"{DECLARED}, line {number}: expected {expected}, not '{line}'")
    return [Gpu(index=place, uuid=uuid) for place, uuid in enumerate(dict.fromkeys(uuids))]


def _host() -> str:
    name = socket.gethostname().partition(".")[0]
    return "".join(char if char.isalnum() and char.isascii() else "-" for char in name)


def open_nvml() -> Any:
    """Return pynvml with NVML initialized, which the caller shuts down; None without NVML."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _by_nvml() -> list[Gpu]:
    nvml = open_nvml()
    if nvml is None:
        return []
    try:
        found = [
            Gpu(index=place, uuid=uuid, name=name, memory_mib=_memory_mib(nvml, handle))
            for place, (handle, uuid, name) in enumerate(handles(nvml))
            if uuid
        ]
    except nvml.NVMLError:
        return []
    finally:
        nvml.nvmlShutdown()
    return found


def handles(nvml: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield handle, UUID and model of each GPU; for a GPU with MIG slices, of each slice.

    A GPU that has fallen off the bus has an empty UUID, so that the others keep their indices.
    """
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            name = _text(nvml.nvmlDeviceGetName(handle))
            parts = _slices(nvml, handle) or [handle]
            rows = [(part, _text(nvml.nvmlDeviceGetUUID(part)), name) for part in parts]
        except nvml.NVMLError:
            rows = [(None, "", "")]
        yield from rows


def _memory_mib(nvml: Any, handle: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20
    except nvml.NVMLError:
        return 0


def _slices(nvml: Any, handle: Any) -> list[Any]:
    try:
        enabled, _ = nvml.nvmlDeviceGetMigMode(handle)
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if enabled else 0
    except nvml.NVMLError:
        return []
    found = []
    for place in range(min(count, _MAX_MIG)):
        try:
            found.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place))
        except nvml.NVMLError:
            continue
    return found


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _by_smi() -> list[Gpu]:
    gpus = parse_smi_list(smi_output("-L"))
    memory = smi_output("--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits")
    for line in memory.splitlines() if gpus else ():
        uuid, _, mib = line.partition(", ")
        for gpu in gpus:
            if gpu.uuid == uuid and mib.isdigit():
                gpu.memory_mib = int(mib)
    return gpus


def smi_output(*arguments: str) -> str:
    """Return the output of nvidia-smi, also if it fails."""
    try:
        return _smi(*arguments)
    except QueryFailed as error:  # also if only one of many GPUs fails
        return error.output


def parse_smi_list(text: str) -> list[Gpu]:
    """Return the GPUs in the output of ``nvidia-smi -L``; for a GPU with MIG slices, the slices."""
    groups: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        title, mark, rest = line.rpartition("(UUID: ")
        uuid = rest.rstrip(") ")
        if not mark or not valid_uuid(uuid):
            continue
        if title.lstrip().startswith("GPU "):
            groups.append((title.partition(":")[2].strip(), uuid, []))
        elif title.lstrip().startswith("MIG ") and groups:
            groups[-1][2].append(uuid)
    rows = [(name, uuid) for name, parent, slices in groups for uuid in slices or [parent]]
    return [Gpu(index=place, uuid=uuid, name=name) for place, (name, uuid) in enumerate(rows)]


def smi_numbers(text: str) -> dict[str, str]:
    """Return the UUID of each GPU without MIG slices in ``nvidia-smi -L``, by name: ``GPU0``."""
    whole = {gpu.uuid for gpu in parse_smi_list(text)}
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        uuid = rest.rpartition("(UUID: ")[2].rstrip(") ")
        if name.startswith("GPU ") and uuid in whole:
            found[name.replace(" ", "")] = uuid
    return found


def processes() -> list[GpuProcess]:
    """Return the processes that currently compute on a GPU; empty if they cannot be queried."""
    found = _processes_by_nvml()
    if found is not None:
        return found
    query = "--query-compute-apps=gpu_uuid,pid,process_name"
    return parse_smi_processes(smi_output(query, "--format=csv,noheader"))


def parse_smi_processes(text: str) -> list[GpuProcess]:
    """Return the rows ``uuid, pid, name`` of ``nvidia-smi --query-compute-apps``.

    The output quotes nothing, and users choose names: a name may contain quotes and commas.
    """
    found = []
    for line in text.split("\n"):
        uuid, pid, name = (*(part.strip() for part in line.split(",", 2)), "", "", "")[:3]
        if valid_uuid(uuid) and pid.isascii() and pid.isdigit() and len(pid) <= 10:
            found.append(GpuProcess(uuid=uuid, pid=int(pid), name=os.path.basename(name)))
    return found


def _processes_by_nvml() -> list[GpuProcess] | None:
    nvml = open_nvml()
    if nvml is None:
        return None
    found = []
    try:
        for handle, uuid, _ in handles(nvml):
            for process in _running(nvml, handle) if uuid else ():
                found.append(GpuProcess(uuid=uuid, pid=process.pid, name=_name_of(process.pid)))
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()
    return found


def _running(nvml: Any, handle: Any) -> list[Any]:
    try:
        return list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except nvml.NVMLError:
        return []


def _name_of(pid: int) -> str:
    try:
        return " ".join(read_text(f"/proc/{pid}/comm").split())  # a name may contain newlines
    except OSError:
        return ""


def _smi(*arguments: str) -> str:
    return ask(["nvidia-smi", *arguments], os.environ, _SMI_TIMEOUT_S)
