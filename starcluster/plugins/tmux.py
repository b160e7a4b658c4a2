"""``setup_class = starcluster.plugins.tmux.TmuxControlCenter``: all nodes in one tmux session."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from starcluster.clustersetup import ClusterSetup
from starcluster.node.node import Node


class TmuxControlCenter(ClusterSetup):
    """Create a tmux session on the master with a window for each node, for root and the user.

    Attach to it on the master: ``tmux attach -t starcluster``.

    Args:
        envname: Name of the session.
    """

    def __init__(self, envname: str = "starcluster") -> None:
        super().__init__()
        self._session = envname

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Open the missing windows."""
        if not master.ssh.which("tmux"):
            master.package_install("tmux")
        for who in ("root", user):
            self._open(master, who, nodes)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Open a window for the new node."""
        for who in ("root", user):
            self._open(master, who, [node])

    def on_remove_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Close the node's window."""
        for who in ("root", user):
            argv = ["tmux", "kill-window", "-t", f"{self._session}:{node.alias}"]
            master.ssh.run(_as(who, argv))

    def _open(self, master: Node, who: str, nodes: Sequence[Node]) -> None:
        if master.ssh.run(_as(who, ["tmux", "has-session", "-t", self._session])).status:
            master.ssh.checked(
                _as(who, ["tmux", "new-session", "-d", "-s", self._session, "-n", master.alias])
            )
        argv = ["tmux", "list-windows", "-t", self._session, "-F", "#{window_name}"]
        there = master.ssh.checked(_as(who, argv)).split()
        for node in nodes:
            if node.alias not in there:
                argv = ["tmux", "new-window", "-d", "-t", f"{self._session}:", "-n", node.alias]
                master.ssh.checked(_as(who, [*argv, "ssh", node.alias]))


def _as(who: str, argv: Sequence[str]) -> list[str]:
    return ["su", "-", who, "-c", shlex.join(argv)]
