"""How the rows of a minibatch and the columns of a layer can be divided over the blocks."""

from __future__ import annotations

_MAX_CHUNK = 512  # rows of the operands of a weight gradient in shared memory: the more, the faster
_GOOD_CHUNK = 80  # fewer rows at a time cost more than further rows of padding, if more fit
_MIN_CHUNK = 48


def row_groups(batch: int, rows: int, most: int = 128) -> int:
    """Return the fewest groups of ``rows`` rows for a minibatch that divide into large chunks.

    Args:
        batch: Rows of the minibatch.
        rows: Rows of a group.
        most: Rows of a chunk that fit in shared memory.
    """
    groups = -(-batch // rows)
    while max((n for n in chunks(groups * rows) if n <= most), default=0) < min(
        groups * rows, _GOOD_CHUNK, most
    ):
        groups += 1
    return groups


def chunks(padded: int, item_bytes: int = 2) -> list[int]:
    """Return the numbers of rows into which a minibatch can be divided, the largest first."""
    sizes = range(min(padded, _MAX_CHUNK), 0, -16)
    least = min(padded, _MIN_CHUNK * 2 // item_bytes)
    found = [n for n in sizes if padded % n == 0 and n >= least]
    return found or [16]


def column_groups(widest: int, most: int) -> list[int]:
    """Return the two largest numbers of groups for each possible number of tiles per group."""
    of_tiles: dict[int, list[int]] = {}
    for groups in range(1, most + 1):
        of_tiles.setdefault(-(-widest // groups), []).append(groups)
    return [groups for same in of_tiles.values() for groups in same[:-3:-1]]
