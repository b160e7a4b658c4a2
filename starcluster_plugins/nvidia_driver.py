"""Query, install and reload the NVIDIA driver of a node."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starcluster.errors import NodeError
from starcluster.node import Node
from starcluster_plugins import nvidia_debian
from starcluster_plugins.nvidia_facts import (
    MODPROBE,
    MODPROBE_FILE,
    PARAMETER,
    QUERY,
    Gpu,
    loaded_value,
    parse_gpus,
)

_PARAMS = "/proc/driver/nvidia/params"
_MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")
_SERVICES = (
    "nvidia-persistenced",
    "nvidia-fabricmanager",
    "nvidia-dcgm",
    "gridengine-exec",  # its load sensor queries the driver every few seconds
)
_RELOAD_S = 300.0
_DEVICE = "grep -qx 0x10de /sys/bus/pci/devices/*/vendor"

_RELOAD = """
set -u
stopped=
for service in $1; do
    if systemctl is-active --quiet "$service" 2>/dev/null; then
        systemctl stop "$service" && stopped="$service $stopped"
    fi
done
for module in $2; do
    grep -q "^$module " /proc/modules || continue
    modprobe -r "$module" || { code=1; break; }
done
modprobe nvidia || code=1
modprobe nvidia_uvm 2>/dev/null
for service in $stopped; do systemctl start "$service"; done
exit ${code:-0}
"""

NO_NOUVEAU = """
printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/no-nouveau.conf
"""
_BEGIN = f"""
set -eu
{NO_NOUVEAU}
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a
apt="apt-get -q -y -o DPkg::Lock::Timeout=300"
for pause in 5 15 30 60 0; do  # after a boot, other programs lock the package lists
    $apt update && break
    sleep $pause
done
"""
_UBUNTU = """
version=$1 kernel=$(uname -r)
flavour=${kernel##*-}
prebuilt=linux-modules-nvidia-$version-$flavour
utils=nvidia-utils-${version%-open}
if apt-cache show "$prebuilt" > /dev/null 2>&1; then
    $apt install "$prebuilt" "linux-modules-nvidia-$version-$kernel" "$utils"
    held="$prebuilt $utils"
else
    $apt install "linux-headers-$kernel" "nvidia-driver-$version"
    held=nvidia-driver-$version
fi
apt-mark hold $held > /dev/null
"""
_END = """
modprobe -r nouveau 2> /dev/null || :
modprobe nvidia
"""
DEFAULT_DRIVER = "580-server"
"""Driver that ``default`` means on Ubuntu; Debian has one driver in each release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """State of the parameter in ``modinfo -p``, in the loaded driver and in our file."""

    modinfo: str
    params: str
    configured: str


def gpus(node: Node) -> list[Gpu]:
    """Return the GPUs of the node; none without a working driver."""
    argv = ["nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    answer = node.ssh.run(argv, timeout_s=120)
    return parse_gpus(answer.stdout) if answer.status == 0 else []


def has_device(node: Node) -> bool:
    """Return whether the node has an NVIDIA card, even without a driver."""
    return node.ssh.run(["sh", "-c", _DEVICE]).status == 0


def parameter(node: Node) -> Parameter:
    """Return the state of the parameter on the node."""
    lists = (node.ssh.run(["modinfo", "-p", name]).stdout for name in ("nvidia", "nvidia-current"))
    return Parameter(
        modinfo="\n".join(lists),
        params=node.ssh.run(["cat", _PARAMS]).stdout,
        configured=node.ssh.run(["cat", MODPROBE_FILE]).stdout,
    )


def keep_check_off(node: Node) -> None:
    """Write the parameter to the file that the driver reads at boot."""
    node.ssh.write_file(MODPROBE_FILE, MODPROBE)
    early = ["update-initramfs", "-u"] if node.ssh.which("update-initramfs") else ["dracut", "-f"]
    node.ssh.checked(early, timeout_s=_RELOAD_S)


def turn_check_off(node: Node) -> None:
    """Reload the driver, and check in the driver that the parameter is in force.

    Raises:
        NodeError: The driver is in use, or it was loaded with another value.
    """
    argv = ["sh", "-s", " ".join(_SERVICES), " ".join(_MODULES)]
    reload = node.ssh.run(argv, stdin=_RELOAD, timeout_s=_RELOAD_S)
    if reload.status:
        users = node.ssh.run(["sh", "-c", "fuser -v /dev/nvidia* 2>&1"]).stdout
        raise NodeError(
            f"cannot reload the driver: {reload.stderr.strip()} {users}".strip(),
            f"{PARAMETER}=0 takes effect at the next reboot: starcluster restart TAG",
            alias=node.alias,
        )
    value = loaded_value(node.ssh.run(["cat", _PARAMS]).stdout)
    if value != 0:
        raise NodeError(
            f"{PARAMETER} is {value} in {_PARAMS} after a reload of the driver",
            f"Check whether another file sets it: grep -r {PARAMETER} /etc/modprobe.d",
            alias=node.alias,
        )


def install(node: Node, version: str) -> None:
    """Install the driver packages of Ubuntu or Debian and load the driver. Raises NodeError."""
    middle = _UBUNTU
    if nvidia_debian.is_debian(node.ssh.run(["cat", "/etc/os-release"]).stdout):
        nvidia_debian.enable_non_free(node)
        middle = nvidia_debian.SCRIPT
    else:
        version = version.replace("default", DEFAULT_DRIVER)
    script = _BEGIN + middle + _END
    answer = node.ssh.run(["sh", "-s", version], stdin=script, timeout_s=1800)
    if answer.status:
        tail = "\n".join((answer.stdout + answer.stderr).strip().splitlines()[-5:])
        raise NodeError(
            f"cannot install driver {version}: {tail}",
            "Use an image that has the driver: starcluster listimages --stock",
            alias=node.alias,
        )


def fabric_manager(node: Node) -> tuple[str, bool]:
    """Start Fabric Manager; return its version (empty if not installed) and if it runs."""
    version = node.ssh.run(["nv-fabricmanager", "--version"])
    node.ssh.run(["systemctl", "enable", "--now", "nvidia-fabricmanager"])
    active = node.ssh.run(["systemctl", "is-active", "--quiet", "nvidia-fabricmanager"]).status == 0
    found = re.search(r"\d[\d.]+", version.stdout) if version.status == 0 else None
    return (found[0] if found else "", active)
