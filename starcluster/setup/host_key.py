"""Replace the host key of a launch, which the user data contains, by one that the node makes."""

from __future__ import annotations

from starcluster.model import TAG_HOST_KEY
from starcluster.node import host_keys
from starcluster.node.node import Node
from starcluster.setup.scripts import facts, script

_STEP_S = 60.0
_RESTART_S = 20.0


def replace_host_key(node: Node) -> None:
    """Let the node make its own host key, and store the public half in its tag.

    The node must be connected, so its answer comes from the machine with the key of the launch. The
    tag has both keys until the node presents the new one; a rerun continues after any interruption.

    Raises:
        SshError: The node does not present the new key.
    """
    new = _run(node, "make")
    if node.ssh.host_key == new:
        return
    _tell(node, host_keys.joined(new, *host_keys.split(node.ssh.host_key)))
    _run(node, "use")
    node.ssh.close()
    node.ssh.host_key = new
    node.ssh.connect(wait_s=_RESTART_S)
    _tell(node, new)


def _tell(node: Node, keys: str) -> None:
    node.add_tag(TAG_HOST_KEY, keys)
    node.ssh.host_key = keys
    host_keys.remember(node.id, keys)


def _run(node: Node, action: str) -> str:
    argv = ["sh", "-s", "hostkey"]
    text = script("hostkey", {"ACTION": action})
    return facts(node.ssh.checked(argv, stdin=text, timeout_s=_STEP_S))["host_key"][0]
