"""Set variables after the files that a shell reads before the job: profiles and ``.cshrc``.

These files of the user can set the same variables. The shell gets its commands as before, with one
line above them, so that its functions, aliases and variables remain.
"""

from __future__ import annotations

import os
import stat

from sge_jobs.node.claim.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_BOURNE = frozenset(["sh", "bash", "dash", "ksh", "ksh93", "mksh", "zsh"])
_C_SHELLS = frozenset(["csh", "tcsh"])
_MOST = 1 << 26  # bytes of a script that is copied
_FIRST_LINE = 256


def after_profile(
    job: Command, environment: Mapping[str, str], variables: Mapping[str, str]
) -> Command:
    """Return ``job`` so that ``variables`` are set after the files that its shell reads.

    These are the profiles of a login shell, ``.zshenv``, the file in ``BASH_ENV``, and ``.cshrc``
    of each C shell without ``-f``. A program whose first line names such a shell counts, too.

    Args:
        variables: Values need no quotes.
    """
    shell = job if _is_shell(job.program) else _interpreter(job)
    if shell is None:
        return job
    options, rest = _options(shell.argv[1:])
    if not rest or not _reads_files(shell, options, environment):
        return job
    is_c_shell = _name(shell.program) in _C_SHELLS
    setting = _setting(variables, is_c_shell=is_c_shell)
    before = [shell.argv[0], *options]
    if rest[0] == "-c":
        return Command(shell.program, [*before, "-c", f"{setting}; {rest[1]}", *rest[2:]])
    try:
        if rest[0] == "-s":
            return Command(shell.program, shell.argv, stdin=_copy(setting, 0))
        if is_c_shell:
            script = f"/proc/self/fd/{_copy_of(rest[0], setting)}"
            return Command(shell.program, [*before, script, *rest[1:]])
    except (AttributeError, OSError):  # no memfd_create, or no memory
        return job
    return Command(shell.program, [*before, "-c", f'{setting}; . "$0"', *rest])


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _is_shell(program: str) -> bool:
    return _name(program) in _BOURNE or _name(program) in _C_SHELLS


def _interpreter(job: Command) -> Command | None:
    """Return the command that the kernel executes for a script of a shell; None otherwise."""
    try:
        with open(job.program, "rb") as file:
            line = os.fsdecode(file.read(_FIRST_LINE)).partition("\n")[0]
    except OSError:
        return None
    if not line.startswith("#!") or not os.access(job.program, os.X_OK):
        return None
    program, _, option = line[2:].strip().replace("\t", " ").partition(" ")
    option = option.strip()
    if _name(program) == "env":
        program, option = option, ""
    if not _is_shell(program) or " " in program:
        return None
    words = [option] if option else []
    return Command(program, [program, *words, job.program, *job.argv[1:]])


def _options(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the leading options, and the rest: ``-c TEXT``, ``-s`` or a script; or nothing."""
    for place, word in enumerate(words):
        if word in ("-c", "-s") or not word.startswith("-"):
            rest = words[place:]
            return words[:place], [] if rest == ["-c"] else rest
        if not word.startswith("--") and ("c" in word or "s" in word):
            break
    return words, []


def _reads_files(shell: Command, options: list[str], environment: Mapping[str, str]) -> bool:
    name = _name(shell.program)
    letters = "".join(word for word in options if not word.startswith("--"))
    if name == "zsh" or name in _C_SHELLS:
        return "f" not in letters
    is_login = shell.argv[0].startswith("-") or "l" in letters or "--login" in options
    return is_login or (name == "bash" and bool(environment.get("BASH_ENV")))


def _setting(variables: Mapping[str, str], *, is_c_shell: bool) -> str:
    if is_c_shell:
        return "; ".join(f'setenv {name} "{value}"' for name, value in variables.items())
    return "export " + " ".join(f"{name}={value}" for name, value in variables.items())


def _copy_of(script: str, setting: str) -> int:
    descriptor = os.open(script, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _copy(setting, descriptor)
    finally:
        os.close(descriptor)


def _copy(setting: str, script: int) -> int:
    """Return a file in memory: ``setting``, then the script in a descriptor. Raises OSError.

    It replaces a comment in the first line, so that the numbers of lines do not change.
    """
    status = os.fstat(script)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST:
        raise OSError("the script is not a file, or too large")
    copy = os.memfd_create("job", 0)
    first, end, _ = os.pread(script, _FIRST_LINE, 0).partition(b"\n")
    is_comment = first.startswith(b"#") and end and not first.endswith(b"\\")
    os.write(copy, f"{setting}\n".encode())
    place = len(first) + 1 if is_comment else 0
    while chunk := os.pread(script, 1 << 20, place):
        place += len(chunk)
        while chunk:
            chunk = chunk[os.write(copy, chunk) :]
    os.lseek(copy, 0, os.SEEK_SET)
    return copy
