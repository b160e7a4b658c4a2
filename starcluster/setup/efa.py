"""Report whether EFA works on a node."""

from __future__ import annotations

from starcluster.node.node import Node
from starcluster.setup.scripts import facts, script

_LIMIT_S = 60.0
_INSTALL = "Use a Deep Learning image, or install https://efa-installer.amazonaws.com"


def check(node: Node) -> tuple[str, str]:
    """Return a report and a problem; both are empty on a node without EFA devices.

    Also lets jobs lock memory; call it before Grid Engine starts.
    """
    values = {"SYS": "/sys", "DEVICES": "/dev/infiniband"}
    text = script("efa", values)
    found = facts(node.ssh.checked(["sh", "-s", "efa"], stdin=text, timeout_s=_LIMIT_S))
    if "adapters" not in found:
        return "", ""
    count = found["adapters"][0]
    if "missing" in found:
        return (
            "",
            f"EFA cannot be used, NCCL falls back to TCP: no {found['missing'][0]}. {_INSTALL}",
        )
    return f"EFA works, {count} devices", ""
