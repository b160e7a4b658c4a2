"""The command that the starter executes; tests on a cell compare it with Grid Engine."""

from __future__ import annotations

import pytest

from sge_jobs.node.claim.command import job_command, parse_config

SCRIPT = "/spool/job_scripts/7"
BINARY = {"handle_as_binary": "1", "no_shell": "0"}
BARE = {"handle_as_binary": "1", "no_shell": "1"}


def started(
    args: list[str], config: dict[str, str], mode: str, shell: str = "/bin/bash", login: str = ""
) -> tuple[str, list[str]]:
    environment = {
        "SGE_STARTER_SHELL_PATH": shell,
        "SGE_STARTER_SHELL_START_MODE": mode,
        "SGE_STARTER_USE_LOGIN_SHELL": login,
    }
    command = job_command(args, environment, config, "/bin/zsh")
    return command.program, command.argv


@pytest.mark.parametrize(
    ("args", "config", "mode", "expected"),
    [
        ([SCRIPT, "a b"], {}, "posix_compliant", ("/bin/bash", ["bash", SCRIPT, "a b"])),
        ([SCRIPT, "a b"], {}, "unix_behavior", (SCRIPT, [SCRIPT, "a b"])),
        (["-s", "a b"], {}, "script_from_stdin", ("/bin/bash", ["bash", "-s", "a b"])),
        (["x y", "", "$A"], BINARY, "unix_behavior", ("/bin/bash", ["bash", "-c", 'x y ""$A '])),
        (["x y"], BINARY, "posix_compliant", ("/bin/bash", ["bash", "-c", "x y "])),
        (["x y", "$A"], BARE, "unix_behavior", ("x y", ["x y", "$A"])),
        (["x y", "$A"], BARE, "posix_compliant", ("x y", ["x y", "$A"])),
        (
            ["-s", "b"], {**BINARY, "script_file": "x"}, "script_from_stdin",
            ("/bin/bash", ["bash", "-c", "x b "]),
        ),
    ],
)  # fmt: skip
def test_every_mode(
    args: list[str], config: dict[str, str], mode: str, expected: tuple[str, list[str]]
) -> None:
    assert started(args, config, mode) == expected


def test_a_login_shell_has_a_dash_before_its_name() -> None:
    assert started([SCRIPT], {}, "posix_compliant", login="true")[1][0] == "-bash"


def test_qrsh_joins_its_words_for_the_users_shell() -> None:
    words = ["echo", "$HOME", "a  b"]
    assert started(words, {}, "unix_behavior", shell="") == (
        "/bin/zsh", ["zsh", "-c", "echo $HOME a  b"],
    )  # fmt: skip
    assert started(words, BARE, "unix_behavior", shell="") == ("echo", words)


def test_a_name_given_twice_in_the_config_counts_as_the_last() -> None:
    assert parse_config("a=1\n\nno mark\nb=x=y\na=2\n") == {"a": "2", "b": "x=y"}
