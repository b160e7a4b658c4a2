"""/etc/hosts and known_hosts: entries of a cluster are added once, all others stay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from starcluster.node.hosts_file import known_hosts, with_names, without_names

UBUNTU = """\
127.0.0.1 localhost
127.0.1.1 ip-10-0-0-5.ec2.internal ip-10-0-0-5
::1 ip6-localhost
10.9.9.9 fileserver # ours
"""


def names(text: str) -> dict[str, str]:
    rows = [line.partition("#")[0].split() for line in text.splitlines()]
    return {name: row[0] for row in rows if row for name in row[1:]}


def test_the_first_name_of_each_nodes_address_is_its_own() -> None:
    before = UBUNTU + "10.0.0.5 ip-10-0-0-5\n"
    text = with_names(before, {"master": "10.0.0.5", "node001": "10.0.0.6"})
    found = names(text)
    assert found == {
        "localhost": "127.0.0.1",
        "ip6-localhost": "::1",
        "fileserver": "10.9.9.9",
        "master": "10.0.0.5",
        "node001": "10.0.0.6",
    }


def test_a_node_that_comes_back_with_another_address_and_one_that_takes_its_old() -> None:
    text = with_names(UBUNTU, {"master": "10.0.0.5", "node001": "10.0.0.6"})
    text = with_names(text, {"node001": "10.0.0.7"})
    assert names(text)["node001"] == "10.0.0.7"
    assert names(text)["master"] == "10.0.0.5"
    text = with_names(text, {"node002": "10.0.0.7"})
    assert "node001" not in names(text)


def test_names_go_and_comments_stay() -> None:
    text = with_names(UBUNTU, {"master": "10.0.0.5", "node001": "10.0.0.6"})
    text = without_names(text, ["node001", "never"])
    assert "node001" not in text
    assert "# ours" in text
    assert names(with_names(text, {"node002": "10.0.0.8"}))["master"] == "10.0.0.5"


_NAMES = st.sampled_from(["master", "node001", "node002", "gpu-node001"])
_ADDRESSES = st.integers(1, 6).map(lambda number: f"10.0.0.{number}")


@given(st.dictionaries(_NAMES, _ADDRESSES).filter(lambda d: len(set(d.values())) == len(d)))
def test_twice_is_as_once(addresses: dict[str, str]) -> None:
    once = with_names(UBUNTU, addresses)
    assert with_names(once, addresses) == once
    assert addresses.items() <= names(once).items()


def test_known_hosts_replace_the_keys_of_the_same_names_only() -> None:
    old = "# mine\ngithub.com ssh-ed25519 GITHUB\nnode001,10.0.0.6 ssh-ed25519 OLD\n"
    new = known_hosts(old, {("node001", "10.0.0.6"): "ssh-ed25519 NEW root@x"})
    assert new.splitlines() == [
        "# mine",
        "github.com ssh-ed25519 GITHUB",
        "node001,10.0.0.6 ssh-ed25519 NEW",
    ]
    assert known_hosts(new, {("node001", "10.0.0.6"): "ssh-ed25519 NEW"}) == new
