"""``setup_class = starcluster.plugins.mpich2.MPICH2Setup``: MPICH on all nodes."""

from __future__ import annotations

from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.node.node import Node

HOSTS = "/home/mpich2.hosts"
_PROFILE = "/etc/profile.d/mpich2.sh"
# The groups of alternatives in which Debian's packages compete with Open MPI.
_ALTERNATIVES = {"mpi": "/usr/bin/mpicc.mpich", "mpirun": "/usr/bin/mpirun.mpich"}


class MPICH2Setup(DefaultClusterSetup):
    """Install MPICH, make it the default MPI, and list the nodes and their processors for it."""

    def __init__(self) -> None:
        super().__init__()

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Install on all nodes."""
        for_each(nodes, self._install)
        self._list(nodes, master)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Install on the new node, and list it."""
        self._install(node)
        self._list(nodes, master)

    def on_remove_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Remove the node from the list."""
        self._list([other for other in nodes if other is not node], master)

    def _install(self, node: Node) -> None:
        if not node.ssh.which("mpirun.mpich"):
            node.package_install(["mpich", "libmpich-dev"])
        for name, path in _ALTERNATIVES.items():
            # A package of another release can lack one of the groups.
            if not node.ssh.run(["update-alternatives", "--query", name]).status:
                node.ssh.checked(["update-alternatives", "--set", name, path])
        node.ssh.write_file(_PROFILE, f"export HYDRA_HOST_FILE={HOSTS}\n")

    def _list(self, nodes: Any, master: Node) -> None:
        lines = [f"{node.alias}:{node.num_processors}\n" for node in nodes]
        master.ssh.write_file(HOSTS, "".join(lines))
