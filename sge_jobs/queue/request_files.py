"""Default options of qsub in files: keep those that place and account jobs, drop the others.

qsub reads them from the cell, the home directory and the current directory. An option such as
``-t``, ``-h``, ``-w v`` or a last ``-soft`` there would change how a job is submitted, or prevent
it. With ``-clear``, qsub ignores the files; the options to keep are then given as arguments.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence

from sge_jobs.errors import InputError
from sge_jobs.queue.default_files import default_files

# Name of the option and its number of values.
_KEPT = {
    "-A": 1,
    "-ac": 1,
    "-ar": 1,
    "-binding": 1,
    "-hard": 0,
    "-js": 1,
    "-jsv": 1,
    "-l": 1,
    "-m": 1,
    "-M": 1,
    "-p": 1,
    "-P": 1,
    "-q": 1,
    "-R": 1,
    "-soft": 0,
    "-v": 1,
    "-V": 0,
}
_OVERRIDDEN = {"-q", "-P"}  # a second one would be added to the first, not replace it


def kept_defaults(environment: Mapping[str, str], argv: Sequence[str]) -> list[str]:
    """Return the arguments of qsub that replace its files of defaults; empty if there is no file.

    Args:
        environment: Environment variables of qsub, with SGE_ROOT.
        argv: Its other arguments; they override the defaults.

    Raises:
        InputError: A file has an option that cannot be overridden.
    """
    files = {path: _words(text) for path, text in default_files(environment, "sge_request").items()}
    if not files:
        return []
    for path, options in files.items():
        if any(name == "-sync" and value[:1] != ["n"] for name, value in _options(options)):
            raise InputError(
                f"{path} contains -sync: qsub would wait for the end of each job",
                "Remove this option: no other option overrides it.",
            )
    words = [word for options in files.values() for word in options]
    given = _OVERRIDDEN & set(argv)
    kept = ["-clear"]
    for name, values in _options(words):
        count = _KEPT.get(name)
        if count is not None and len(values) >= count and name not in given:
            kept += [name, *values[:count]]
    return [*kept, "-hard"]


def _words(text: str) -> list[str]:
    words: list[str] = []
    for line in text.splitlines():
        if not line.lstrip().startswith("#"):
            with contextlib.suppress(ValueError):  # no closing quotation
                words += shlex.split(line)
    return words


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each option and the words up to the next one."""
    starts = [place for place, word in enumerate(words) if word.startswith("-") and len(word) > 1]
    values_of_p = {place + 1 for place in starts if words[place] == "-p"}  # -p -10
    starts = [place for place in starts if place not in values_of_p]
    for place, after in zip(starts, [*starts[1:], len(words)], strict=True):
        yield words[place], list(words[place + 1 : after])
