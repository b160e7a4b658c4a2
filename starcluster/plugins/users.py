"""``setup_class = starcluster.plugins.users.CreateUsers``: create users of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import ConfigError
from starcluster.logger import log
from starcluster.node.node import Node

_TRUE = ("true", "yes", "1", "on")


class CreateUsers(DefaultClusterSetup):
    """Create users with a shared home directory and an SSH key, the same on every node.

    Args:
        num_users: Number of users; their names are user001, user002, ...
        usernames: Names separated by commas, instead of ``num_users``.
        download_keys: Whether to download the private keys to this machine.
        download_keys_dir: Directory for the keys; only you can read it.
    """

    def __init__(
        self,
        num_users: str = "",
        usernames: str = "",
        download_keys: str = "",
        download_keys_dir: str = "~/.starcluster/user_keys",
    ) -> None:
        super().__init__()
        self._names = usernames.replace(",", " ").split()
        if not self._names and num_users.isdigit():
            self._names = [f"user{number:03d}" for number in range(1, int(num_users) + 1)]
        if not self._names:
            raise ConfigError("users: no users given", "Set num_users = 5, or usernames = ann, bob")
        if num_users and int(num_users) != len(self._names):
            raise ConfigError(
                f"users: num_users is {num_users}, but {len(self._names)} names are given",
                "Remove num_users.",
            )
        self._download = download_keys.lower() in _TRUE
        self._folder = Path(download_keys_dir).expanduser()

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Create the users on the master, then on all nodes with the same uids."""
        log.info("Creating users: %s", ", ".join(self._names))
        for name in self._names:
            master.add_user(name, shell=user_shell)
            master.generate_key_for_user(name, auth_new_key=True, auth_conn_key=True)
        for_each(
            [node for node in nodes if node is not master], lambda node: self._on(node, master)
        )
        if self._download:
            self._get_keys(master)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Create the users on the new node."""
        self._on(node, master)

    def _on(self, node: Node, master: Node) -> None:
        for name in self._names:
            entry = master.getpwnam(name)
            shell = entry.pw_shell.rpartition("/")[2]
            node.add_user(name, uid=entry.pw_uid, gid=entry.pw_gid, shell=shell)

    def _get_keys(self, master: Node) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        for name in self._names:
            home = master.getpwnam(name).pw_dir
            target = self._folder / f"{name}.key"
            target.unlink(missing_ok=True)
            target.touch(mode=0o600)
            target.write_text(master.ssh.read_file(f"{home}/.ssh/id_ed25519"))
        log.info("Downloaded the private keys of the users to %s", self._folder)
