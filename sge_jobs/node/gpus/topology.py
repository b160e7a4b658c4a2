"""Find how the GPUs of this host are connected: declared, by NVML, or by ``nvidia-smi topo -m``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sge_jobs.node.gpus.detect import handles, open_nvml, smi_numbers, smi_output
from sge_jobs.node.gpus.inventory import Inventory, read_text
from sge_jobs.node.gpus.links import FAR, NODE, NVLINK, SWITCH, Links

_WORDS = {"PIX": SWITCH, "PXB": SWITCH, "PHB": NODE, "NODE": NODE}
_P2P_NVLINK, _P2P_OK = 2, 0  # NVML_P2P_CAPS_INDEX_NVLINK, NVML_P2P_STATUS_OK
_MULTIPLE, _NODE = 20, 40  # NVML_TOPOLOGY_MULTIPLE, NVML_TOPOLOGY_NODE


def find_links(known: Inventory, declared: str) -> Links:
    """Return the links between the GPUs of ``known``; unknown if nothing can tell them.

    Args:
        declared: File in which an administrator declares GPUs.
    """
    if len(known.gpus) < 2:
        return Links()
    links = Links()
    if known.source == "declared":
        links = parse_islands(read_text(declared), known.uuids)
    if not links.rows:
        links = _by_nvml(known.uuids)
    if not links.rows:
        links = parse_smi_topology(smi_output("topo", "-m"), smi_numbers(smi_output("-L")))
    return links


def links_of(uuids: Sequence[str], level: Callable[[str, str], int]) -> Links:
    """Return the links between ``uuids``, each of which ``level`` tells."""
    return Links(
        {
            one: "".join("0" if one == other else str(level(one, other)) for other in uuids)
            for one in uuids
        }
    )


def parse_islands(text: str, uuids: Sequence[str]) -> Links:
    """Return the links that the lines ``island = 0 1`` of a declaration describe.

    The numbers are indices. GPUs of an island have NVLink between them. Without such a line the
    links are unknown.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines()):
        key, mark, value = (part.strip() for part in line.partition("#")[0].partition("="))
        if mark and key == "island":
            places = (int(place) for place in value.split())
            found |= {uuids[place]: number for place in places if place < len(uuids)}
    if not found:
        return Links()
    return links_of(
        uuids, lambda one, other: NVLINK if found.get(one, one) == found.get(other, other) else FAR
    )


def _by_nvml(uuids: Sequence[str]) -> Links:
    nvml = open_nvml()
    if nvml is None:
        return Links()
    try:
        found = {uuid: handle for handle, uuid, _ in handles(nvml) if uuid in uuids}
        present = [uuid for uuid in uuids if uuid in found]
        return links_of(present, lambda one, other: _level(nvml, found[one], found[other]))
    except nvml.NVMLError:
        return Links()
    finally:
        nvml.nvmlShutdown()


def _level(nvml: Any, one: Any, other: Any) -> int:
    try:
        if nvml.nvmlDeviceGetP2PStatus(one, other, _P2P_NVLINK) == _P2P_OK:
            return NVLINK
    except nvml.NVMLError:  # an old driver, or a MIG slice
        pass
    try:
        ancestor = nvml.nvmlDeviceGetTopologyCommonAncestor(one, other)
    except nvml.NVMLError:
        return FAR
    if ancestor <= _MULTIPLE:
        return SWITCH
    return NODE if ancestor <= _NODE else FAR


def parse_smi_topology(text: str, uuids: dict[str, str]) -> Links:
    """Return the links in the table of ``nvidia-smi topo -m``.

    Args:
        uuids: UUID of each GPU by its name in the table, such as ``GPU0``.
    """
    columns, *lines = [words for words in map(_words, text.splitlines()) if words] or [[]]
    table = {
        (words[0], column): word
        for words in lines
        for column, word in zip(columns, words[1:])  # noqa: B905 (Python 3.9 has no strict)
    }
    names = [name for name in uuids if (name, name) in table]
    by_uuid = {uuids[name]: name for name in names}
    return links_of(
        list(by_uuid), lambda one, other: _level_of(table.get((by_uuid[one], by_uuid[other]), ""))
    )


def _level_of(word: str) -> int:
    return NVLINK if word.startswith("NV") else _WORDS.get(word, FAR)


def _words(line: str) -> list[str]:
    """Return the words of a line, without the codes that underline it."""
    parts = line.split("\x1b[")
    return "".join([parts[0], *(part.partition("m")[2] for part in parts[1:])]).split()
