"""Parse reports of the NVIDIA driver, and decide what to change; pure.

AWS recommends these settings: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/optimize_gpu.html
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

PARAMETER = "NVreg_CheckPCIConfigSpace"
MODPROBE_FILE = "/etc/modprobe.d/nvidia-tune.conf"
MODPROBE = "".join(f"options {module} {PARAMETER}=0\n" for module in ("nvidia", "nvidia-current"))
QUERY = (
    "index", "uuid", "name", "driver_version", "persistence_mode",
    "clocks.applications.memory", "clocks.applications.graphics",
)  # fmt: skip
_NO_CHECK_SINCE = 435
# Instance families with NVSwitch; their sizes with a single GPU have none.
_SWITCHED = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")
_AUTO_BOOST = ("g3", "g3s", "p2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU; clocks in MHz, empty if the card has no such setting."""

    index: str
    uuid: str
    name: str
    driver: str
    persistent: bool
    clocks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Decision about the check of the PCI configuration space.

    Attributes:
        write: Whether to write the parameter for the next boot.
        reload: Whether to reload the driver so that the parameter takes effect now.
        words: Explanation for the log.
    """

    words: str
    write: bool = False
    reload: bool = False


def parse_gpus(text: str) -> list[Gpu]:
    """Return the GPUs of ``nvidia-smi --query-gpu=QUERY --format=csv,noheader,nounits``."""
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    found = []
    for row in rows:
        if len(row) == len(QUERY):
            index, uuid, name, driver, persistence, memory, graphics = map(str.strip, row)
            numbers = memory.isdigit() and graphics.isdigit()
            found.append(
                Gpu(
                    index=index,
                    uuid=uuid,
                    name=name,
                    driver=driver,
                    persistent=persistence == "Enabled",
                    clocks=f"{memory},{graphics}" if numbers else "",
                )
            )
    return found


def has_parameter(modinfo: str) -> bool:
    """Return whether ``modinfo -p`` lists the parameter."""
    return any(line.split(":")[0].strip() == PARAMETER for line in modinfo.splitlines())


def loaded_value(params: str) -> int | None:
    """Return its value in ``/proc/driver/nvidia/params``; None if the driver has none."""
    match = re.search(r"^CheckPCIConfigSpace:\s*(-?\d+)\s*$", params, re.M)
    return int(match[1]) if match else None


def decide_check(*, modinfo: str, params: str, configured: str, driver: str) -> Check:
    """Return the decision about the check of the PCI configuration space.

    Args:
        modinfo: ``modinfo -p`` of nvidia and nvidia-current, together.
        params: ``/proc/driver/nvidia/params``.
        configured: Our file in /etc/modprobe.d; empty if it does not exist.
        driver: Version of the driver.
    """
    value = loaded_value(params)
    if not has_parameter(modinfo):
        major = int(driver.partition(".")[0]) if driver.partition(".")[0].isdigit() else 0
        why = f"removed in {_NO_CHECK_SINCE}"
        if major and major < _NO_CHECK_SINCE:
            why = "this build has no such parameter"
        return Check(words=f"{PARAMETER}: not applicable on driver {driver} ({why})")
    write = configured != MODPROBE
    if value == 0:
        words = "is 0; saving it for reboots" if write else "is 0, also after a reboot"
        return Check(words=f"{PARAMETER}: {words}", write=write)
    return Check(words=f"{PARAMETER}: is {value}; changing it to 0", write=write, reload=True)


def highest_clocks(supported: str) -> dict[str, str]:
    """Return ``MEMORY,GRAPHICS`` in MHz for each GPU of ``nvidia-smi -q -d SUPPORTED_CLOCKS``.

    That is the highest graphics clock at the highest memory clock, by bus id and in the order of
    the list. Cards without a choice of clocks are omitted.
    """
    found: dict[str, tuple[int, int]] = {}
    gpu, memory = "", 0
    for line in supported.splitlines():
        if match := re.match(r"GPU ([0-9A-Fa-f:.]+)\s*$", line):
            gpu = match[1]
        elif match := re.match(r"\s+Memory\s*:\s*(\d+) MHz", line):
            memory = int(match[1])
        elif (match := re.match(r"\s+Graphics\s*:\s*(\d+) MHz", line)) and gpu:
            found[gpu] = max(found.get(gpu, (0, 0)), (memory, int(match[1])))
    return {gpu: f"{memory},{graphics}" for gpu, (memory, graphics) in found.items()}


def wants_auto_boost_off(instance_type: str) -> bool:
    """Return whether AWS recommends to turn auto boost off."""
    return instance_type.partition(".")[0] in _AUTO_BOOST


def needs_fabric_manager(instance_type: str, gpus: Sequence[Gpu]) -> bool:
    """Return whether the GPUs require Fabric Manager."""
    return len(gpus) > 1 and instance_type.partition(".")[0] in _SWITCHED


def fabric_manager_problem(version: str, driver: str, *, active: bool) -> str:
    """Return the problem with Fabric Manager; empty if there is none.

    Args:
        version: Output of ``nv-fabricmanager --version``; empty if it is not installed.
    """
    match = re.search(r"(\d+\.\d+(?:\.\d+)?)", version)
    if match is None:
        return f"Fabric Manager is not installed: install nvidia-fabricmanager {driver}"
    if match[1] != driver:
        return f"Fabric Manager {match[1]} does not match driver {driver}: install the same version"
    return (
        "" if active else "Fabric Manager is not running; see: journalctl -u nvidia-fabricmanager"
    )
