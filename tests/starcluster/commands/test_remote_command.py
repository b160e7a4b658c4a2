"""Options of ssh commands stand before the remote command; what follows belongs to it."""

from __future__ import annotations

from typing import Any

import pytest

from starcluster.cli.login import command_line
from starcluster.commands import shells
from tests.commands import starcluster


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def run_ssh(_: object, tag: str, name: str, **options: Any) -> int:
        found.append((tag, name, options["user"], options["command"], options["flags"]))
        return 7

    monkeypatch.setattr(shells, "run_ssh", run_ssh)
    return found


@pytest.mark.parametrize(
    ("words", "user", "command", "flags"),
    [
        ((), "root", (), []),
        (("-u", "ann"), "ann", (), []),
        (("qstat", "-u", "*"), "root", ("qstat", "-u", "*"), []),
        (("-X", "-u", "ann", "qstat", "-u", "*", "-f"), "ann", ("qstat", "-u", "*", "-f"), ["-X"]),
        (("-t", "--", "ls", "--help"), "root", ("ls", "--help"), ["-t"]),
        (("qstat", "-help", "-h"), "root", ("qstat", "-help", "-h"), []),
        (("sh", "-c", "exit 3", "--", "x"), "root", ("sh", "-c", "exit 3", "--", "x"), []),
    ],
)
@pytest.mark.parametrize("where", [("sshmaster", "gpu"), ("sn", "gpu", "master")])
def test_options_after_the_tag(
    asked: list[Any],
    where: tuple[str, ...],
    words: tuple[str, ...],
    user: str,
    command: tuple[str, ...],
    flags: list[str],
) -> None:
    assert starcluster(*where, *words).returncode == 7
    assert asked == [("gpu", "master", user, command, flags)]


def test_options_before_the_tag_too(asked: list[Any]) -> None:
    starcluster("sshmaster", "-A", "--user=ann", "gpu", "-t", "qstat", "-j", "1")
    assert asked == [("gpu", "master", "ann", ("qstat", "-j", "1"), ["-A", "-t"])]


def test_an_unknown_option_before_the_command_is_an_error(asked: list[Any]) -> None:
    done = starcluster("sshmaster", "gpu", "--usr", "ann", "id")
    assert done.returncode == 2
    assert "--usr" in done.stderr
    assert not asked
    assert "Usage:" in starcluster("sshmaster", "gpu", "--help").stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["qstat -u '*' | wc -l"], "qstat -u '*' | wc -l"),
        (["ls *.txt"], "ls *.txt"),
        (["qstat", "-u", "*"], "qstat -u '*'"),
        (["touch", "a b"], "touch 'a b'"),
        (["cd", "~/x", "&&", "echo", "$HOME", "'a  b'"], "cd ~/x && echo $HOME 'a  b'"),
        (["A=1", "make", "-j4"], "A=1 make -j4"),
    ],
)
def test_what_the_shell_of_the_node_reads(words: list[str], line: str) -> None:
    assert command_line(words) == line
