"""The NVIDIA driver from Debian's own packages, in non-free and non-free-firmware."""

from __future__ import annotations

import re

from starcluster.node import Node

COMPONENTS = ("contrib", "non-free", "non-free-firmware")
_LISTS = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
_LINE = re.compile(r"^(deb\s.*\bdebian\S*\s+\S+\s+main\b.*)$", re.MULTILINE)
_FIELD = re.compile(r"^Components:.*$", re.MULTILINE)
_OF_DEBIAN = re.compile(r"^URIs:.*debian", re.MULTILINE)

# The cloud images of Debian 12 and 13 have no X server; nvidia-driver would install one.
SCRIPT = """
version=${1%-open} kernel=$(uname -r)
candidate=$(apt-cache policy nvidia-smi | sed -n 's/^ *Candidate: //p')
case $candidate in
    "${version%-server}".*) ;;
    *) [ "$version" = default ] || {
        echo "Debian has driver $candidate, not $1: set driver = ${candidate%%.*} or default" >&2
        exit 1
    } ;;
esac
headers=linux-headers-$kernel
apt-cache show "$headers" > /dev/null 2>&1 || {
    echo "Debian has no package $headers any more: use a newer image (starcluster listimages" \\
        "--stock), or upgrade the kernel (apt-get install linux-image-cloud-amd64) and reboot" >&2
    exit 1
}
module=nvidia-kernel-dkms
[ "${1%-open}" = "$1" ] || module=nvidia-open-kernel-dkms
libraries="libcuda1 libnvidia-ml1 libnvidia-cfg1"
$apt install --no-install-recommends "$headers"
$apt install --no-install-recommends "$module" nvidia-smi nvidia-persistenced $libraries \\
    firmware-nvidia-gsp
apt-mark hold "$module" nvidia-smi nvidia-persistenced $libraries firmware-nvidia-gsp > /dev/null
"""
"""Part of the install script of nvidia_driver; its argument is the version, or ``default``."""


def is_debian(os_release: str) -> bool:
    """Return whether /etc/os-release is that of Debian itself."""
    return re.search(r"^ID=[\"']?debian[\"']?$", os_release, re.MULTILINE) is not None


def with_components(text: str) -> str:
    """Return an apt source file in which Debian's sources have ``COMPONENTS``.

    Both formats are read: lines that begin with ``deb``, and stanzas with fields. Sources of
    others stay as they are.
    """
    text = _LINE.sub(lambda match: _added(match[1]), text)
    stanzas = re.split(r"(\n\s*\n)", text)
    return "".join(
        _FIELD.sub(lambda match: _added(match[0]), stanza) if _OF_DEBIAN.search(stanza) else stanza
        for stanza in stanzas
    )


def _added(line: str) -> str:
    words = line.split()
    return " ".join([line.rstrip(), *(each for each in COMPONENTS if each not in words)])


def enable_non_free(node: Node) -> None:
    """Add ``COMPONENTS`` to the apt sources of Debian on the node."""
    one, folder = _LISTS
    paths = [one] if node.ssh.isfile(one) else []
    if node.ssh.isdir(folder):
        found = sorted(node.ssh.ls(folder))
        paths += [path for path in found if path.endswith((".list", ".sources"))]
    for path in paths:
        text = node.ssh.read_file(path)
        if (new := with_components(text)) != text:
            node.ssh.write_file(path, new)
