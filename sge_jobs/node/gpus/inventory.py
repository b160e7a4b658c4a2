"""The list of this host's GPUs, a small text file that the sensor writes and starters read."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUN_DIRECTORY = "/run/sge_jobs"
MPS_DIRECTORY = "/run/sge_jobs_mps/daemons"  # apart from the locks, because users can fill it
CACHE = RUN_DIRECTORY + "/gpus"
DECLARED = "/etc/sge-gpus"
BOOT_ID = "/proc/sys/kernel/random/boot_id"

_TITLE = "sge_jobs gpus 1"
_LIMIT = 65536
_UUID_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Gpu:
    """One GPU, or one MIG slice of a GPU.

    Attributes:
        memory_mib: Its memory; 0 if unknown.
    """

    __slots__ = ("index", "memory_mib", "name", "uuid")

    def __init__(self, *, index: int, uuid: str, name: str = "", memory_mib: int = 0) -> None:
        self.index = index
        self.memory_mib = memory_mib
        self.uuid = uuid
        self.name = name


class Inventory:
    """The GPUs of this host.

    Attributes:
        source: declared, nvml, nvidia-smi or none.
        per_slot: Whether a request ``gpu=N`` counts for each slot, not for the whole job.
        chosen: Whether Grid Engine chooses the GPUs of a job (``gpu`` is an RSMAP).
        closed: Whether only the processes of its jobs can open the device of a GPU.
        blocked: Processes outside Grid Engine that use a GPU, by UUID.
        links: Rows of :class:`sge_jobs.node.gpus.links.Links`, which starters do not import.
    """

    __slots__ = ("blocked", "chosen", "closed", "gpus", "links", "per_slot", "source")

    def __init__(
        self,
        *,
        source: str,
        gpus: Sequence[Gpu],
        per_slot: bool = False,
        chosen: bool = False,
        closed: bool = False,
        blocked: Mapping[str, Sequence[int]] | None = None,
        links: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self.gpus = tuple(gpus)
        self.per_slot = per_slot
        self.chosen = chosen
        self.closed = closed
        self.blocked = {uuid: tuple(pids) for uuid, pids in (blocked or {}).items()}
        self.links = dict(links or {})

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUIDs in the order of the indices."""
        return tuple(gpu.uuid for gpu in self.gpus)

    def blockers(self, uuid: str, proc: str = "/proc") -> list[int]:
        """Return the running processes outside Grid Engine that use the GPU."""
        return [pid for pid in self.blocked.get(uuid, ()) if os.path.exists(f"{proc}/{pid}")]


def valid_uuid(text: str) -> bool:
    """Whether ``text`` is a valid UUID and file name: letters, digits, ``.``, ``_``, ``-``."""
    return 0 < len(text) <= 100 and text[0] not in ".-_" and _UUID_LETTERS.issuperset(text)


def boot_id(path: str = BOOT_ID) -> str:
    """Return the ID of the current boot; empty if it cannot be read."""
    try:
        return read_text(path).strip()
    except OSError:
        return ""


def read_text(path: str, limit: int = _LIMIT) -> str:
    """Return the first ``limit`` bytes of ``path``. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    chunks: list[bytes] = []
    try:
        while limit > 0:
            chunk = os.read(descriptor, min(limit, 16384))
            if not chunk:
                break
            chunks.append(chunk)
            limit -= len(chunk)
    finally:
        os.close(descriptor)
    return b"".join(chunks).decode("utf-8", "replace")


def write_whole(path: str, text: str, mode: int = 0o644) -> None:
    """Write a temporary file in the same directory and rename it to ``path``. Raises OSError."""
    temporary = f"{path}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    os.replace(temporary, path)


def encode(inventory: Inventory, boot: str) -> str:
    """Return the text of the cache."""
    lines = [
        _TITLE,
        f"boot {boot}",
        f"source {inventory.source}",
        f"per_slot {int(inventory.per_slot)}",
        f"chosen {int(inventory.chosen)}",
        f"closed {int(inventory.closed)}",
        *(f"gpu {gpu.index} {gpu.uuid} {gpu.name}".rstrip() for gpu in inventory.gpus),
        *(f"memory {gpu.uuid} {gpu.memory_mib}" for gpu in inventory.gpus if gpu.memory_mib),
        *(f"links {uuid} {row}" for uuid, row in inventory.links.items()),
        *(f"blocked {uuid} {' '.join(map(str, pids))}" for uuid, pids in inventory.blocked.items()),
        "end",
    ]
    return "\n".join(lines) + "\n"


def decode(text: str, boot: str) -> Inventory | None:
    """Return the list that :func:`encode` wrote in boot ``boot``; None for any other text."""
    lines = text.split("\n")
    if lines[0] != _TITLE or lines[-2:] != ["end", ""] or f"boot {boot}" not in lines:
        return None
    gpus: list[Gpu] = []
    blocked: dict[str, list[int]] = {}
    links: dict[str, str] = {}
    fields = {"source": "", "per_slot": "0", "chosen": "0", "closed": "0"}
    for line in lines[1:-2]:
        key, _, value = line.partition(" ")
        if key == "gpu":
            index, _, rest = value.partition(" ")
            uuid, _, name = rest.partition(" ")
            if not index.isdigit() or not valid_uuid(uuid):
                return None
            gpus.append(Gpu(index=int(index), uuid=uuid, name=name))
        elif key == "memory":
            uuid, _, mib = value.partition(" ")
            for gpu in gpus:
                if gpu.uuid == uuid and mib.isdigit():
                    gpu.memory_mib = int(mib)
        elif key == "links":
            uuid, _, row = value.partition(" ")
            links[uuid] = row
        elif key == "blocked":
            uuid, *pids = value.split()
            blocked[uuid] = [int(pid) for pid in pids if pid.isdigit()]
        else:
            fields[key] = value
    return Inventory(
        source=fields["source"], gpus=gpus, per_slot=fields["per_slot"] == "1",
        chosen=fields["chosen"] == "1", closed=fields["closed"] == "1", blocked=blocked,
        links=links,
    )  # fmt: skip


def read_cache(path: str = CACHE, boot: str | None = None) -> Inventory | None:
    """Return the list that the sensor wrote since this host booted; None without a valid one."""
    try:
        text = read_text(path)
    except OSError:
        return None
    return decode(text, boot_id() if boot is None else boot)
