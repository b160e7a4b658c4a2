"""Regions: names of the datasets that one command searches side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from spearmint.errors import InputError, did_you_mean

# A region is a folder and a part of a study's name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def region_problem(regions: Iterable[str]) -> tuple[int, str] | None:
    """Return the place of the first bad name in ``regions``, from 0, and what is wrong with it."""
    seen: set[str] = set()
    for i, region in enumerate(regions):
        if not _NAME.fullmatch(region):
            return i, f"region {region!r} is not a name of letters, digits, '.', '_' and '-'"
        if region.lower() in seen:
            return i, f"duplicate region {region!r}"
        seen.add(region.lower())
    return None


def read_regions(path: Path) -> tuple[str, ...]:
    """Return the regions of a file, one on each line; ``#`` begins a comment.

    Raises:
        InputError: It cannot be read, names none, or holds a bad name; the message has the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the regions in {path}: {error}") from None
    bare = [(i, line.partition("#")[0].strip()) for i, line in enumerate(lines, 1)]
    named = [(i, region) for i, region in bare if region]
    regions = tuple(region for _, region in named)
    if not regions:
        raise InputError(f"{path} names no region", "Write one on each line.")
    if problem := region_problem(regions):
        place, what = problem
        raise InputError(f"{path}:{named[place][0]}: {what}", "Write one on each line.")
    return regions


def pick_region(regions: tuple[str, ...], wanted: str) -> str:
    """Return ``wanted`` if it is one of ``regions``. Raises InputError otherwise."""
    if wanted in regions:
        return wanted
    if not regions:
        raise InputError(f"there is no region {wanted!r}: this search has none")
    raise InputError(
        f"there is no region {wanted!r}; there are: {', '.join(regions)}",
        did_you_mean(wanted, regions),
    )
