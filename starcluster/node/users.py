"""Users of a node and their SSH keys: a part of :class:`starcluster.node.Node`."""

from __future__ import annotations

import posixpath
import pwd
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from starcluster.errors import NodeError
from starcluster.node.hosts_file import known_hosts

if TYPE_CHECKING:
    from starcluster.node.node import Node
    from starcluster.node.shell import Shell

_KEY = "id_ed25519"


class NodeUsers:
    """Users of one node."""

    alias: str

    @property
    def ssh(self) -> Shell:
        """The node's connection."""
        raise NotImplementedError

    def getpwnam(self, username: str) -> pwd.struct_passwd:
        """Return the passwd entry of a user on the node; raises KeyError for an unknown user."""
        answer = self.ssh.run(["getent", "passwd", username])
        if answer.status:
            raise KeyError(f"{self.alias} has no user {username}")
        return _entry(answer.stdout)

    def get_user_map(self, key_by_uid: bool = False) -> dict[str | int, pwd.struct_passwd]:
        """Return all users of the node by name, or by uid."""
        entries = map(_entry, self.ssh.checked(["getent", "passwd"]).splitlines())
        return {entry.pw_uid if key_by_uid else entry.pw_name: entry for entry in entries}

    def add_user(
        self, name: str, uid: int | None = None, gid: int | None = None, shell: str = "bash"
    ) -> None:
        """Create a user with a group of the same name, unless the user exists.

        Args:
            uid: Default: the next free uid.
            gid: Default: ``uid``, or the next free gid.

        Raises:
            NodeError: The user exists with another uid.
        """
        try:
            found = self.getpwnam(name)
        except KeyError:
            pass
        else:
            if uid is not None and found.pw_uid != uid:
                raise NodeError(
                    f"{self.alias}: user {name} has uid {found.pw_uid}, not {uid}",
                    "Use another user name, or an image without this user.",
                    alias=self.alias,
                )
            return
        group = gid if gid is not None else uid
        number = ["--gid", str(group)] if group is not None else []
        if self.ssh.run(["getent", "group", name]).status:
            self.ssh.checked(["groupadd", *number, name])
        argv = ["useradd", "--create-home", "--gid", name, "--shell", f"/bin/{shell}"]
        self.ssh.checked([*argv, *(["--uid", str(uid)] if uid is not None else []), name])

    def add_user_to_group(self, user: str, group: str) -> None:
        """Add a user to a group of the node; the group is created if it does not exist."""
        if self.ssh.run(["getent", "group", group]).status:
            self.ssh.checked(["groupadd", group])
        self.ssh.checked(["usermod", "--append", "--groups", group, user])

    def generate_key_for_user(
        self,
        username: str,
        ignore_existing: bool = False,
        auth_new_key: bool = False,
        auth_conn_key: bool = False,
    ) -> str:
        """Create an SSH key for a user on the node; return the public key.

        The private key never leaves the node.

        Args:
            ignore_existing: Replace an existing key instead of keeping it.
            auth_new_key: Authorize this key to log in as the user.
            auth_conn_key: Authorize the key of this connection to log in as the user.
        """
        user = self.getpwnam(username)
        folder = self._ssh_folder(user)
        path = posixpath.join(folder, _KEY)
        if ignore_existing or not self.ssh.isfile(path):
            for old in (path, f"{path}.pub"):
                if self.ssh.path_exists(old):
                    self.ssh.unlink(old)
            comment = f"{username}@{self.alias}"
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path]
            self.ssh.checked(argv)
            for new in (path, f"{path}.pub"):
                self.ssh.chown(user.pw_uid, user.pw_gid, new)
        public = self.ssh.read_file(f"{path}.pub").strip()
        wanted = [public] * auth_new_key + [self.ssh.public_key] * auth_conn_key
        self.authorize(username, wanted)
        return public

    def authorize(self, username: str, public_keys: Iterable[str]) -> None:
        """Add ``public_keys`` to the authorized keys of a user."""
        user = self.getpwnam(username)
        path = posixpath.join(self._ssh_folder(user), "authorized_keys")
        text = self.ssh.read_file(path) if self.ssh.isfile(path) else ""
        known = {_key_of(line) for line in text.splitlines()}
        new = [key for key in dict.fromkeys(public_keys) if _key_of(key) not in known]
        if new:
            lines = "".join(f"{line}\n" for line in (*text.splitlines(), *new))
            self._write_own(user, path, lines)

    def enable_passwordless_ssh(self, username: str, nodes: Iterable[Node]) -> None:
        """Authorize a user of this node to log in to ``nodes`` and to itself; add all host keys.

        If the user has no key, this node creates it. The private key stays on this node and on
        nodes that share the home directory.
        """
        nodes = list(nodes)
        public = self.generate_key_for_user(username, auth_new_key=True)
        for node in nodes:
            node.authorize(username, [public])
        self.add_to_known_hosts(username, nodes)

    def add_to_known_hosts(
        self, username: str, nodes: Iterable[Node], add_self: bool = True
    ) -> None:
        """Add the host keys of ``nodes``, by alias and address, to a user's known_hosts."""
        user = self.getpwnam(username)
        path = posixpath.join(self._ssh_folder(user), "known_hosts")
        text = self.ssh.read_file(path) if self.ssh.isfile(path) else ""
        known = {node.names: node.ssh.host_key for node in nodes if node is not self}
        if add_self:
            known[self.names] = self.ssh.host_key
        new = known_hosts(text, known)
        if new != text:
            self._write_own(user, path, new)

    @property
    def names(self) -> tuple[str, ...]:
        """The node's alias and private address."""
        raise NotImplementedError

    def _ssh_folder(self, user: pwd.struct_passwd) -> str:
        path = posixpath.join(user.pw_dir, ".ssh")
        if not self.ssh.isdir(path):
            self.ssh.mkdir(path, 0o700)
            self.ssh.chown(user.pw_uid, user.pw_gid, path)
        return path

    def _write_own(self, user: pwd.struct_passwd, path: str, text: str) -> None:
        self.ssh.write_file(path, text, 0o600)
        self.ssh.chown(user.pw_uid, user.pw_gid, path)


def _entry(line: str) -> pwd.struct_passwd:
    name, password, uid, gid, gecos, home, shell = line.strip().split(":")
    return pwd.struct_passwd((name, password, int(uid), int(gid), gecos, home, shell))


def _key_of(line: str) -> str:
    """Return the key in a line of authorized_keys, without options and comment."""
    words = shlex.split(line, comments=True) if line.strip() else []
    return max(words, key=len, default="")
