"""Aliases of instances launched together: packed into a tag, and unpacked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from starcluster.aws.aliases import alias_at, packed
from starcluster.aws.responses import instance
from starcluster.model import TAG_ALIAS, TAG_ALIASES


@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        (["master", *(f"node{n:03d}" for n in range(1, 200))], "master node001:199"),
        (["node009", "node010", "node012"], "node009:2 node012"),
        (["node999", "node1000"], "node999:2"),
        (["gpu-master", "gpu-node001"], "gpu-master gpu-node001"),
        (["a", "b"], "a b"),
        ([f"name-{'x' * 20}-{n * 2}" for n in range(20)], ""),
    ],
)
def test_a_text_for_many(aliases: list[str], text: str) -> None:
    assert packed(aliases) == text
    if text:
        assert [alias_at(text, n) for n in range(len(aliases) + 1)] == [*aliases, ""]


@given(some.lists(some.from_regex(r"[a-z]{0,2}[0-9]{0,3}", fullmatch=True).filter(bool)))
def test_each_finds_its_own(aliases: list[str]) -> None:
    text = packed(aliases)
    if text or not aliases:
        assert [alias_at(text, n) for n in range(len(aliases))] == aliases


def test_a_tag_of_its_own_has_the_last_word() -> None:
    tags = [{"Key": TAG_ALIASES, "Value": "master node001:2"}]
    row = {"InstanceId": "i-1", "AmiLaunchIndex": 2, "Tags": tags}
    assert instance(row).alias == "node002"
    tags.append({"Key": TAG_ALIAS, "Value": "node007"})
    assert instance(row).alias == "node007"
