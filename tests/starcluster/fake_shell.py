"""A node without a machine: files in a dictionary, programs as functions, and what was run."""

from __future__ import annotations

import io
import posixpath
import shlex
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starcluster.aws.model import Instance
from starcluster.errors import RemoteCommandFailed
from starcluster.model import TAG_ALIAS
from starcluster.node.commands import Answer
from starcluster.node.files import RemoteFiles
from starcluster.node.node import Node

Program = Callable[["FakeShell", list[str], str], tuple[int, str]]


@dataclass
class Entry:
    """A file, or a directory where ``data`` is None."""

    data: bytes | None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0

    @property
    def st_mode(self) -> int:
        return (stat.S_IFDIR if self.data is None else stat.S_IFREG) | self.mode


class _Open(io.BytesIO):
    def __init__(self, entry: Entry, mode: str) -> None:
        super().__init__(b"" if mode[0] == "w" else entry.data or b"")
        if mode[0] == "a":
            self.seek(0, io.SEEK_END)
        self._entry, self._writes = entry, mode[0] in "wa"

    def chmod(self, mode: int) -> None:
        self._entry.mode = mode

    def chown(self, uid: int, gid: int) -> None:
        self._entry.uid, self._entry.gid = uid, gid

    def close(self) -> None:
        if self._writes and not self.closed:
            self._entry.data = self.getvalue()
        super().close()


class FakeSftp:
    """What an SFTP server does, on a dictionary."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {"/": Entry(None)}

    def entry(self, path: str) -> Entry:
        try:
            return self.entries[posixpath.normpath(path)]
        except KeyError:
            raise FileNotFoundError(2, "No such file", path) from None

    def open(self, filename: str, mode: str = "r") -> _Open:
        if mode[0] != "r":
            self.entry(posixpath.dirname(filename) or "/")
            self.entries.setdefault(posixpath.normpath(filename), Entry(b""))
        return _Open(self.entry(filename), mode)

    def stat(self, path: str) -> Entry:
        return self.entry(path)

    def listdir(self, path: str = ".") -> list[str]:
        self.entry(path)
        names = [each for each in self.entries if posixpath.dirname(each) == path.rstrip("/")]
        return [posixpath.basename(each) for each in names]

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        self.entry(posixpath.dirname(path.rstrip("/")) or "/")
        if posixpath.normpath(path) in self.entries:
            raise OSError("Failure")
        self.entries[posixpath.normpath(path)] = Entry(None, mode)

    def chmod(self, path: str, mode: int) -> None:
        self.entry(path).mode = mode

    def chown(self, path: str, uid: int, gid: int) -> None:
        entry = self.entry(path)
        entry.uid, entry.gid = uid, gid

    def remove(self, path: str) -> None:
        self.entry(path)
        del self.entries[posixpath.normpath(path)]

    def posix_rename(self, oldpath: str, newpath: str) -> None:
        self.entries[newpath] = self.entries.pop(oldpath)

    def put(self, localpath: str, remotepath: str) -> None:
        with self.open(remotepath, "w") as file:
            file.write(Path(localpath).read_bytes())

    def get(self, remotepath: str, localpath: str) -> None:
        Path(localpath).write_bytes(self.entry(remotepath).data or b"")


@dataclass
class FakeShell(RemoteFiles):
    """A shell whose programs are functions; an unknown program exits 127.

    Attributes:
        ran: Command lines, in order.
    """

    name: str = "node001"
    programs: dict[str, Program] = field(default_factory=dict)
    host_key: str = "ssh-ed25519 AAAAhost"
    public_key: str = "ssh-ed25519 AAAAconnection"
    ran: list[str] = field(default_factory=list)
    server: FakeSftp = field(default_factory=FakeSftp)

    @property
    def sftp(self) -> FakeSftp:
        return self.server

    def has(self, path: str, data: str = "") -> None:
        self.makedirs(posixpath.dirname(path))
        self.server.entries[path] = Entry(data.encode())

    def connect(self, *, wait_s: float = 0.0) -> None:
        self.ran.append("connect")

    def close(self) -> None:
        pass

    def run(
        self, argv: Sequence[str], *, stdin: str | bytes = b"", timeout_s: float = 0.0
    ) -> Answer:
        self.ran.append(shlex.join(argv))
        words = list(argv)
        text = stdin if isinstance(stdin, str) else stdin.decode(errors="replace")
        if words[0] == "cat":
            try:
                return Answer(status=0, stdout=self.read_file(words[1]), stderr="")
            except FileNotFoundError:
                return Answer(status=1, stdout="", stderr="no such file")
        program = self.programs.get(words[0])
        status, out = program(self, words, text) if program else (127, f"{words[0]}: not found")
        good = status == 0
        return Answer(status=status, stdout=out if good else "", stderr="" if good else out)

    def checked(
        self, argv: Sequence[str], *, stdin: str | bytes = b"", timeout_s: float = 0.0
    ) -> str:
        answer = self.run(argv, stdin=stdin)
        if answer.status:
            raise RemoteCommandFailed(
                f"{shlex.join(argv)}: {answer.stderr}", exit_status=answer.status
            )
        return answer.stdout

    def execute(self, command: str, ignore_exit_status: bool = False, **_: Any) -> list[str]:
        answer = self.run(["bash", "-c", command])
        if answer.status and not ignore_exit_status:
            raise RemoteCommandFailed(command, exit_status=answer.status)
        return answer.stdout.splitlines()

    def which(self, prog: str) -> list[str]:
        return [f"/usr/bin/{prog}"] if prog in self.programs else []


def fake_node(shell: FakeShell, *, alias: str = "", instance_type: str = "c5.large") -> Node:
    instance = Instance(
        id=f"i-{shell.name}",
        state="running",
        type=instance_type,
        image_id="ami-1",
        zone="us-east-1a",
        private_ip="10.0.0.5",
        tags={TAG_ALIAS: alias or shell.name},
    )
    return Node(instance, lambda _: shell)  # type: ignore[arg-type, return-value]
