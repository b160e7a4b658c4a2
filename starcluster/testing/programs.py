"""Programs of every fake node: they keep users, groups and keys in its files in memory."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from starcluster.node.commands import Answer
from starcluster.testing.files import Entry

if TYPE_CHECKING:
    from starcluster.testing.shell import FakeShell

Reply = str | tuple[int, str] | Answer | Exception
"""Output; or exit status and output; or an Answer; or an exception to raise."""
Program = Callable[["FakeShell", list[str], str], Reply]
"""A function that gets the shell, the words of the command line and standard input."""


def _cat(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    try:
        return "".join(shell.read_file(path) for path in words[1:])
    except FileNotFoundError as error:
        return 1, f"cat: {error.filename}: No such file or directory"


def _touch(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    for path in words[1:]:
        shell.files.entries.setdefault(posixpath.normpath(path), Entry(b""))
    return ""


def _command(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    known = words[-1] in shell.programs or words[-1] in BUILT_IN
    return f"/usr/bin/{words[-1]}\n" if known else (1, "")


def _getent(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    lines = shell.read_file(f"/etc/{words[1]}").splitlines(keepends=True)
    found = [line for line in lines if words[2:] in ([], [line.split(":")[0]])]
    return "".join(found) if found else (2, "")


def _groupadd(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    number = _option(words, "--gid") or _next_id(shell, "/etc/group")
    _append(shell, "/etc/group", f"{words[-1]}:x:{number}:")
    return ""


def _useradd(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    name, group = words[-1], _option(words, "--gid")
    number = _option(words, "--uid") or _next_id(shell, "/etc/passwd")
    gid = shell.checked(["getent", "group", group]).split(":")[2] if group else number
    home = f"/home/{name}"
    _append(shell, "/etc/passwd", f"{name}:x:{number}:{gid}::{home}:{_option(words, '--shell')}")
    shell.makedirs(home)
    shell.chown(int(number), int(gid), home)
    return ""


def _ssh_keygen(shell: FakeShell, words: list[str], stdin: str) -> Reply:
    path = _option(words, "-f")
    shell.write_file(path, f"fake private key of {shell.name}:{path}\n", 0o600)
    shell.write_file(f"{path}.pub", f"ssh-ed25519 AAAA{shell.name}{path} {_option(words, '-C')}\n")
    return ""


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words else ""


def _next_id(shell: FakeShell, path: str) -> str:
    numbers = [int(line.split(":")[2]) for line in shell.read_file(path).splitlines()]
    return str(max([1000, *(number + 1 for number in numbers)]))


def _append(shell: FakeShell, path: str, line: str) -> None:
    shell.write_file(path, f"{shell.read_file(path)}{line}\n")


BUILT_IN: dict[str, Program] = {
    "cat": _cat,
    "command": _command,
    "getent": _getent,
    "groupadd": _groupadd,
    "hostname": lambda *_: "",
    "ssh-keygen": _ssh_keygen,
    "touch": _touch,
    "true": lambda *_: "",
    "useradd": _useradd,
}
