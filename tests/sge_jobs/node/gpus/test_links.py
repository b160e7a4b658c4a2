"""Which GPUs a job gets: every set of free GPUs of hosts with different links."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from sge_jobs.node.gpus.links import FAR, NODE, NVLINK, SWITCH, Links
from sge_jobs.node.gpus.topology import links_of

ALL = [f"GPU-{place}" for place in range(8)]


def host(level: Callable[[int, int], int], uuids: list[str] = ALL) -> Links:
    places = {uuid: place for place, uuid in enumerate(uuids)}
    return links_of(uuids, lambda one, other: level(places[one], places[other]))


def islands(*groups: str, outside: Callable[[int, int], int] = lambda one, other: FAR) -> Links:
    """Return the links of a host whose ``groups`` of digits have NVLink inside."""
    group_of = {int(digit): group for group in groups for digit in group}
    return host(lambda a, b: NVLINK if group_of[a] == group_of[b] else outside(a, b))


def by_socket(one: int, other: int) -> int:
    return NODE if one // 4 == other // 4 else FAR


CUBE = {(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 5), (2, 3),
        (2, 6), (3, 7), (4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7)}  # fmt: skip
NVSWITCH = islands("01234567")
TWO_ISLANDS = islands("0123", "4567")
CROSSED = islands("0246", "1357")
PAIRS = islands("01", "23", "45", "67", outside=by_socket)
UNEVEN = islands("0", "12", "34567")
CUBE_MESH = host(lambda a, b: NVLINK if (min(a, b), max(a, b)) in CUBE else by_socket(a, b))
SWITCHES = host(lambda a, b: SWITCH if a // 2 == b // 2 else by_socket(a, b))
ALIKE = host(lambda a, b: NODE)


def numbers(chosen: list[str]) -> str:
    return "".join(uuid.removeprefix("GPU-") for uuid in chosen)


def choose(links: Links, free: str, wanted: int) -> str:
    return numbers(links.choose([f"GPU-{digit}" for digit in free], wanted))


def requests() -> Iterator[tuple[list[str], int]]:
    """Yield each set of free GPUs with each number of wanted ones."""
    for size in range(9):
        for free in itertools.combinations(ALL, size):
            for wanted in range(1, 10):
                yield list(free), wanted


@pytest.mark.parametrize(
    ("links", "free", "wanted", "expected"),
    [
        (NVSWITCH, "01234567", 4, "0123"),
        (NVSWITCH, "13567", 2, "13"),
        (TWO_ISLANDS, "234567", 4, "4567"),
        (TWO_ISLANDS, "234567", 2, "23"),  # leaves the whole island
        (TWO_ISLANDS, "124567", 1, "1"),
        (TWO_ISLANDS, "01234567", 1, "0"),
        (TWO_ISLANDS, "0124567", 3, "012"),
        (TWO_ISLANDS, "0145", 3, "014"),
        (TWO_ISLANDS, "014567", 5, "04567"),  # four with NVLink and one, not two and three
        (CROSSED, "01234567", 4, "0246"),
        (CROSSED, "01234567", 8, "02461357"),  # linked GPUs are neighbours
        (PAIRS, "01234567", 2, "01"),
        (PAIRS, "1234567", 1, "1"),  # its pair is broken
        (PAIRS, "034567", 2, "45"),  # not 0 and 3, and leaves 6 and 7
        (PAIRS, "1234567", 4, "4567"),
        (PAIRS, "0246", 2, "02"),
        (UNEVEN, "01234567", 1, "0"),
        (UNEVEN, "01234567", 2, "12"),
        (UNEVEN, "01234567", 3, "345"),
        (CUBE_MESH, "01234567", 4, "0123"),
        (CUBE_MESH, "0124567", 4, "4567"),
        (CUBE_MESH, "0457", 2, "04"),
        (SWITCHES, "1234567", 2, "23"),
        (SWITCHES, "123567", 1, "1"),
        (ALIKE, "13567", 3, "135"),
        (Links(), "24567", 3, "245"),
    ],
)
def test_the_best_linked_gpus_are_chosen_and_whole_islands_left(
    links: Links, free: str, wanted: int, expected: str
) -> None:
    assert choose(links, free, wanted) == expected


def test_of_equal_gpus_those_linked_to_gpus_in_use_are_taken() -> None:
    links = islands("0123", "45", "67")
    assert choose(links, "234567", 1) == "2"  # not of a pair of which both are free
    assert choose(links, "234567", 2) == "23"


@pytest.mark.parametrize(
    "hosts", ["01234567", "0123 4567", "0246 1357", "01 23 45 67", "0 12 34567", "0 1 2 3 4 5 6 7"]
)
def test_a_job_gets_one_island_the_smallest_that_has_enough(hosts: str) -> None:
    groups = hosts.split()
    links = islands(*groups)
    for free, wanted in requests():
        chosen = links.choose(free, wanted)
        sizes = [sum(digit in numbers(free) for digit in group) for group in groups]
        enough = [size for size in sizes if size >= wanted]
        assert set(chosen) <= set(free)
        assert len(set(chosen)) == len(chosen) == (wanted if wanted <= len(free) else 0)
        if enough:
            parts = Counter(next(g for g in groups if digit in g) for digit in numbers(chosen))
            (group,) = parts
            assert sizes[groups.index(group)] == min(enough)


@pytest.mark.parametrize("links", [CUBE_MESH, PAIRS, SWITCHES, UNEVEN])
def test_no_other_set_of_free_gpus_has_better_links(links: Links) -> None:
    level = {(a, b): links.level(a, b) for a in ALL for b in ALL}

    def worst_first(uuids: tuple[str, ...]) -> list[int]:
        return sorted((level[pair] for pair in itertools.combinations(uuids, 2)), reverse=True)

    tightness = {
        uuids: worst_first(uuids)
        for size in range(1, 9)
        for uuids in itertools.combinations(ALL, size)
    }
    for free, wanted in requests():
        if chosen := links.choose(free, wanted):
            best = min(tightness[uuids] for uuids in itertools.combinations(free, wanted))
            assert tightness[tuple(sorted(chosen))] == best


def test_without_known_links_gpus_are_taken_by_index() -> None:
    for free, wanted in requests():
        expected = free[:wanted] if wanted <= len(free) else []
        assert Links().choose(free, wanted) == ALIKE.choose(free, wanted) == expected


@pytest.mark.parametrize("row", ["", "1", "101", "1x", "1²"])
def test_damaged_links_are_unknown(row: str) -> None:
    assert Links({"a": "01", "b": row}).rows == {}
    assert Links({"a": "01", "b": "10"}).rows


def test_gpus_whose_links_are_unknown_are_the_last_ones() -> None:
    links = islands("01234567")
    assert links.choose(["GPU-new", "GPU-6", "GPU-7"], 2) == ["GPU-6", "GPU-7"]
    assert links.choose(["GPU-new", "GPU-7"], 2) == ["GPU-7", "GPU-new"]


def test_links_without_any_symmetry_delay_no_job() -> None:
    many = [f"GPU-{place}" for place in range(24)]
    draw = random.Random(4)
    table = {frozenset(pair): draw.randint(1, 4) for pair in itertools.combinations(many, 2)}
    links = links_of(many, lambda one, other: table[frozenset((one, other))])
    assert len(set(links.choose(many, 12))) == 12  # of 2.7 million sets
