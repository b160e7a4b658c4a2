"""The command that Grid Engine would execute without a starter method.

A starter method gets the script or command of the job with its arguments. Three variables and the
``config`` file of the job say how to run them. Tested against sge_shepherd and qrsh_starter 8.1.9.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHELL = "SGE_STARTER_SHELL_PATH"
MODE = "SGE_STARTER_SHELL_START_MODE"
LOGIN = "SGE_STARTER_USE_LOGIN_SHELL"


class Command:
    """A program and its ``argv``, including ``argv[0]``.

    Attributes:
        stdin: Descriptor of its standard input; 0 for that of this process.
    """

    __slots__ = ("argv", "program", "stdin")

    def __init__(self, program: str, argv: Sequence[str], stdin: int = 0) -> None:
        self.program = program
        self.argv = list(argv)
        self.stdin = stdin


def parse_config(text: str) -> dict[str, str]:
    """Return the lines ``name=value`` of a job's ``config`` file; the last line of a name wins."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {name.strip(): value for name, mark, value in pairs if mark}


def job_command(
    args: Sequence[str],
    environment: Mapping[str, str],
    config: Mapping[str, str],
    login_shell: str = "/bin/sh",
) -> Command:
    """Return the command to execute for the starter's arguments ``args``.

    Args:
        config: Configuration of the job; if it is empty (not readable), the job is a script.
        login_shell: Login shell of the user, for qrsh.
    """
    shell = environment.get(SHELL)
    if not shell:
        return _remote(args, config, login_shell if shell == "" else None)
    mode = environment.get(MODE, "").lower()
    name = shell.rpartition("/")[2]
    argv0 = f"-{name}" if environment.get(LOGIN) == "true" else name
    binary = config.get("handle_as_binary") == "1"
    if binary and config.get("no_shell") != "1":
        words = [config.get("script_file", ""), *args[1:]] if mode == "script_from_stdin" else args
        return Command(shell, [argv0, "-c", _one_line(words)])
    if mode == "script_from_stdin":
        return Command(shell, [argv0, *args])
    if mode == "posix_compliant" and not binary:
        return Command(shell, [argv0, *args])
    if mode == "start_as_command":
        return Command(shell, [argv0, "-c", *args[:1]])
    return Command(args[0], args)


def _remote(args: Sequence[str], config: Mapping[str, str], shell: str | None) -> Command:
    if shell is None or config.get("no_shell") == "1":
        return Command(args[0], args)
    return Command(shell, [shell.rpartition("/")[2], "-c", " ".join(args)])


def _one_line(words: Sequence[str]) -> str:
    # sge_shepherd appends a space to each word, and writes an empty word as "" without a space.
    return words[0] + " " + "".join(f"{word} " if word else '""' for word in words[1:])
