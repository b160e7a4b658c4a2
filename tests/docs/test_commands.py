"""Every command line on the pages has a command and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from condor_jobs.cli.main import build_parser as condor_jobs_parser
from pycuda_nn.cli.main import cli as pycuda_nn_cli
from sge_jobs.cli.main import build_parser
from spearmint.cli.main import COMMANDS
from spearmint.cli.main import cli as spearmint_cli
from starcluster.cli.main import cli as starcluster_cli
from tests.docs.tools import DOCS, ROOT

GROUPS = {"spearmint": spearmint_cli, "starcluster": starcluster_cli, "pycuda-nn": pycuda_nn_cli}
PARSERS = {"sge-jobs": build_parser, "condor-jobs": condor_jobs_parser}
PROGRAMS = (*GROUPS, *PARSERS)
PAGES = [
    *(ROOT / name for name in ("README.rst", "CONTRIBUTING.rst")),
    *(page for kind in ("start", "how_to", "reference", "why") for page in DOCS.glob(f"{kind}/*")),
    DOCS / "index.rst",
]
SHELL = re.compile(r"^ *(?:\$|#) ((?:.*\\\n)*.*)$", re.MULTILINE)
INLINE = re.compile(r"``((?:spearmint|starcluster|sge-jobs|condor-jobs|pycuda-nn) [^`]+)``")
ENDS = {";", "&&", "||", "|", ">", "&", "2>&1", "#"}


def lines(text: str) -> Iterator[str]:
    yield from (found[1].replace("\\\n", " ") for found in SHELL.finditer(text))
    yield from (" ".join(found[1].split()) for found in INLINE.finditer(text))


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of starmint, those in quotes for another host too."""
    for line in lines(text):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # prose with an apostrophe
            continue
        for start, word in enumerate(words):
            if word in PROGRAMS and (start == 0 or words[start - 1] in ENDS or "=" in line[:9]):
                rest = words[start:]
                ends = [at for at, other in enumerate(rest) if other in ENDS or other[-1:] == ";"]
                yield [part.rstrip(";") for part in rest[: min(ends, default=len(rest))]]
            elif word.startswith(tuple(f"{program} " for program in PROGRAMS)):
                yield from commands(f"$ {word}")


def check(words: list[str]) -> None:
    """Raise click.UsageError or SystemExit for an option or a command that does not exist."""
    program, *argv = words
    if "..." in argv or "--help" in argv or "-h" in argv or "--version" in argv:
        argv = argv[: argv.index("...")] if "..." in argv else []
    if not argv:
        return
    if program in PARSERS:
        argv, options = _split(argv) if program == "condor-jobs" else (argv, [])
        if options:
            check(["spearmint", *options])
        known = PARSERS[program]()
        known.error = lambda message: pytest.fail(f"{shlex.join(words)}: {message}")  # type: ignore[method-assign]
        known.parse_known_args(argv) if len(argv) > 1 else None
        return
    group = GROUPS[program]
    if program == "spearmint" and argv[0] not in COMMANDS:
        argv = ["run", *argv]
    context = group.context_class(group, info_name=program)
    _, rest, _ = group.make_parser(context).parse_args(list(argv))
    if not rest:
        return
    command = group.get_command(context, rest[0])
    assert command is not None, shlex.join(words)
    inner = command.context_class(command, info_name=rest[0], parent=context)
    try:
        command.make_parser(inner).parse_args(rest[1:])
    except click.UsageError as error:
        if not isinstance(error, click.MissingParameter) and "Missing argument" not in str(error):
            raise AssertionError(f"{shlex.join(words)}: {error.format_message()}") from error


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Return the options of condor-jobs, and those of spearmint after --."""
    end = argv.index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.suffix == ".rst"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_its_commands_and_options_exist(page: Path) -> None:
    for words in commands(page.read_text(encoding="utf-8")):
        check(words)


def test_commands_are_found_and_a_wrong_option_is_named() -> None:
    text = """
   $ spearmint --max-concurrent=2 \\
       experiment
   $ starcluster sshmaster -u sgeadmin gpucluster 'spearmint --drivr=SGE branin/config.pb'

    or ``sge-jobs gpus --json``.
"""
    first, second, inner, last = commands(text)
    assert first == ["spearmint", "--max-concurrent=2", "experiment"]
    assert second[:2] == ["starcluster", "sshmaster"]
    assert last == ["sge-jobs", "gpus", "--json"]
    for words in (first, second, last):
        check(words)
    with pytest.raises(AssertionError, match="--drivr"):
        check(inner)
