"""Names of regions: datasets that one command searches separately."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from spearmint.errors import InputError, did_you_mean, reason_of

# A region names a folder, and is part of the name of a study.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def region_problem(regions: Iterable[str]) -> tuple[int, str] | None:
    """Return the index of the first invalid region and the problem; None if all are valid."""
    seen: set[str] = set()
    for i, region in enumerate(regions):
        if not _NAME.fullmatch(region):
            return i, f"invalid region {region!r}: only letters, digits, '.', '_' and '-'"
        if region.lower() in seen:
            return i, f"duplicate region {region!r}"
        seen.add(region.lower())
    return None


def read_regions(path: Path) -> tuple[str, ...]:
    """Return the regions of a file, one on each line; ``#`` begins a comment.

    Raises:
        InputError: The file cannot be read, is empty, or has an invalid name. The message has the
            line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the regions in {path}: {reason_of(error)}") from None
    bare = [(i, line.partition("#")[0].strip()) for i, line in enumerate(lines, 1)]
    named = [(i, region) for i, region in bare if region]
    regions = tuple(region for _, region in named)
    if not regions:
        raise InputError(f"no region in {path}", "Write one on each line.")
    if problem := region_problem(regions):
        place, what = problem
        raise InputError(f"{path}:{named[place][0]}: {what}", "Write one on each line.")
    return regions


def pick_region(regions: tuple[str, ...], wanted: str) -> str:
    """Return ``wanted`` if it is one of ``regions``. Raises InputError otherwise."""
    if wanted in regions:
        return wanted
    if not regions:
        raise InputError(f"no region {wanted!r}: this search has no regions")
    raise InputError(
        f"no region {wanted!r}; the regions are: {', '.join(regions)}",
        did_you_mean(wanted, regions),
    )
