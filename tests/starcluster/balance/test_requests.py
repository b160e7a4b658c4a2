"""Requests and values as Grid Engine compares them."""

from __future__ import annotations

import math

import pytest

from starcluster.balance.cell.model import Attribute
from starcluster.balance.cell.requests import matches, matches_queue, number, satisfied


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4.0),
        ("20.5G", 20.5 * 1024**3),
        ("2k", 2000.0),
        (".5G", 2.0**29),
        ("-4.000G", -(2.0**32)),
        ("-1", -1.0),
        ("0x10", 16.0),
        ("1:30:00", 5400.0),
        ("TRUE", 1.0),
        ("INFINITY", math.inf),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert number(text) == value


def test_a_text_is_not_in_any_relation_to_a_number() -> None:
    for relation in ("<=", ">=", "==", "other"):
        attribute = Attribute(kind="INT", relation=relation, consumable="NO")
        assert not satisfied(attribute, "many", "4")


@pytest.mark.parametrize(
    ("kind", "relation", "wanted", "has", "expected"),
    [
        ("MEMORY", "<=", "2G", "2048M", True),
        ("MEMORY", "<=", "2G", "2000M", False),
        ("DOUBLE", ">=", "1.5", "0.2", True),
        ("INT", "==", "4", "4.000000", True),
        ("INT", "!=", "4", "4", False),
        ("STRING", "==", "lx-*", "lx-amd64", True),
        ("STRING", "!=", "lx-*", "lx-amd64", False),
        ("HOST", "==", "NODE00?", "node001", True),
        ("RESTRING", "==", "a|b*", "bc", True),
        ("RESTRING", "==", "!(a)&!b*", "bc", False),
    ],
)
def test_relations(kind: str, relation: str, wanted: str, has: str, expected: bool) -> None:
    attribute = Attribute(kind=kind, relation=relation, consumable="NO")
    assert satisfied(attribute, wanted, has) == expected


def test_queues_by_name_host_and_host_group() -> None:
    for pattern in ("all.q", "*", "all.q@node001", "*@node0*", "all.q@@allhosts"):
        assert matches_queue(pattern, "all.q", "node001"), pattern
    for pattern in ("big.q", "all.q@node002", "all.q@@others"):
        assert not matches_queue(pattern, "all.q", "node001"), pattern
    assert matches("!a", "b")
