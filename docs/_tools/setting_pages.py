"""Pages of what the code declares: options and keys of ``spearmint run``, codes of errors."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator

import condor_jobs.errors
import pycuda_nn.errors
import sge_jobs.errors
import spearmint.errors
import starcluster.errors
from spearmint.config.reference import key_rows, option_rows, option_sections
from spearmint.resources import Resources
from spearmint.run_options import STOP, RunOptions

RESOURCES = "Resources of each trial"


def pages() -> dict[str, str]:
    """Return the text of each page by its name in ``_generated``."""
    return {
        "config_keys.rst": key_rows(RunOptions),
        "resource_keys.rst": key_rows(Resources),
        "run_options.rst": option_sections(RunOptions)
        + "\n"
        + option_sections(Resources, RESOURCES),
        "stop_options.rst": option_rows(RunOptions, STOP),
        "error_codes.rst": "\n".join(itertools.chain.from_iterable(map(_codes, _BASES))) + "\n",
    }


ErrorClass = type[Exception]
_BASES: tuple[type[Exception], ...] = (
    spearmint.errors.SpearmintError,
    starcluster.errors.StarClusterError,
    sge_jobs.errors.SgeJobsError,
    condor_jobs.errors.CondorJobsError,
    pycuda_nn.errors.PycudaNNError,
)


def _codes(base: type[Exception]) -> Iterator[str]:
    """Yield a table of an error class and its subclasses, with the exit code of each."""
    yield from (
        f".. list-table:: ``{base.__module__}``",
        "   :header-rows: 1",
        "   :widths: 30 10 60",
    )
    yield from ("", "   * - Class", "     - Code", "     - Meaning")
    for depth, error in _tree(base, 0):
        name = "\u2003" * depth + f"``{error.__name__}``"
        meaning = (inspect.getdoc(error) or "").split("\n\n")[0].replace("\n", " ")
        yield from (f"   * - {name}", f"     - {error.exit_code}", f"     - {meaning}")  # type: ignore[attr-defined]
    yield ""


def _tree(base: type[Exception], depth: int) -> Iterator[tuple[int, type[Exception]]]:
    yield depth, base
    for child in base.__subclasses__():
        if child.__module__ == base.__module__:
            yield from _tree(child, depth + 1)
