"""Pairs instead of products: most bugs need at most two particular values, not five."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

Place = tuple[int, int]
"""A column and the index of a value in it."""


def pairs(*columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return few rows, with one value per column, that contain any two values of two columns.

    A greedy algorithm like AETG (Cohen et al. 1997). It is deterministic.
    """
    lists = [list(column) for column in columns]
    places = [[(at, n) for n in range(len(values))] for at, values in enumerate(lists)]
    left = {frozenset(two) for a, b in combinations(places, 2) for two in product(a, b)}
    rows = []
    while left:
        row: list[Place] = sorted(min(left, key=sorted))
        for column in places:
            if column[0][0] not in {at for at, _ in row}:
                row.append(max(column, key=lambda one: sum({one, p} in left for p in row)))
        left -= {frozenset(two) for two in combinations(row, 2)}
        rows.append(tuple(lists[at][n] for at, n in sorted(row)))
    return rows
