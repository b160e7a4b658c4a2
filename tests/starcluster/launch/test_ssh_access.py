"""Who can connect by SSH: the caller by default, and ``allow`` after its address changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from starcluster.aws import caller
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.config import Key, NodeType, Template, config
from starcluster.config.network import EVERYBODY, ssh_from
from starcluster.config.sections import Permission
from starcluster.errors import ConfigError, Unreachable
from starcluster.launch import ssh_access
from starcluster.launch.origin import Origin
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front
from tests.testbed.hostless import without_hosts

TEMPLATE = Template(
    name="t",
    key=Key(name="k", location=None),  # type: ignore[arg-type]
    keyname="k",
    cluster_size=1,
    node_instance_type=(NodeType(instance_type="t3.micro"),),
)
HOME, OFFICE = "203.0.113.5", "198.51.100.7"
Move = Callable[[str], None]


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    """A function that moves this machine to an address; empty for no address."""

    def moved(address: str) -> None:
        def found(endpoint: str, node: str = "") -> str:
            if not address:
                raise Unreachable("unknown", "Set ssh_from")
            return address

        ssh_access._caller.cache_clear()
        monkeypatch.setattr(ssh_access, "address_of_caller", found)
        monkeypatch.setattr(caller, "address_of_caller", found)

    yield moved
    ssh_access._caller.cache_clear()


@pytest.fixture
def start(
    front: Front, settings: config.Config, client_to: Callable[[str, str], Ec2]
) -> Iterator[Callable[..., ClusterLifecycle]]:
    """A function that starts cluster c."""

    def started(**overrides: str) -> ClusterLifecycle:
        cluster = ClusterLifecycle(client_to(front.address, "us-east-1"), settings, "c")
        origin = Origin(template="big", overrides=overrides)
        cluster.create(cluster.prepare(settings.template("big", overrides), origin))
        return cluster

    with without_hosts():
        yield started


def open_to(ec2: Ec2) -> set[str]:
    (group,) = ec2.security_groups("@sc-c")
    return {rule.cidr_ip for rule in ssh_access.ssh_rules(group)}


def test_a_permission_for_port_22_replaces_the_key() -> None:
    web = Permission(name="web", from_port=80, to_port=80)
    office = Permission(name="office", from_port=0, to_port=1024, cidr_ip="10.0.0.0/8")
    (ssh, other) = ssh_access.rules_of(replace(TEMPLATE, permissions=(web,)), f"{HOME}/32")
    assert (ssh.from_port, ssh.to_port, ssh.cidr_ip, other) == (22, 22, f"{HOME}/32", web)
    assert ssh_access.rules_of(replace(TEMPLATE, permissions=(office,)), "") == (office,)
    everybody = ssh_access.rules_of(replace(TEMPLATE, ssh_from=("anywhere",)), "")
    assert tuple(rule.cidr_ip for rule in everybody) == EVERYBODY


@pytest.mark.parametrize("value", ["callers", "203.0.113.5/24", "10.0.0.0/33", "caller, x"])
def test_a_wrong_address_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="caller"):
        ssh_from(value)
    assert ssh_from("caller, 2001:db8::/32,10.1.2.3") == ("caller", "2001:db8::/32", "10.1.2.3/32")


def test_only_the_caller_is_admitted_and_an_unknown_one_stops_before_the_launch(
    ec2: Ec2, move: Move, start: Callable[..., ClusterLifecycle], front: Front
) -> None:
    move("")
    with pytest.raises(Unreachable, match="ssh_from"):
        start()
    assert not ec2.security_groups("@sc-c")
    move(HOME)
    start()
    assert open_to(ec2) == {f"{HOME}/32"}


def test_a_machine_that_moved_opens_its_new_address_instead(
    ec2: Ec2,
    move: Move,
    start: Callable[..., ClusterLifecycle],
    big: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    move(HOME)
    cluster = start(ssh_from="caller, 192.0.2.0/24")
    node = Instance(
        id="i-1", state="running", type="t", image_id="a", zone="z", public_ip="203.0.113.200"
    )
    assert ssh_access.why_no_answer(cluster.ec2, "c", node) == ("", "")
    move(OFFICE)
    why, fix = ssh_access.why_no_answer(cluster.ec2, "c", node)
    assert OFFICE in why
    assert fix.endswith("starcluster allow c")
    monkeypatch.setattr("starcluster.commands.allow.address_of_caller", lambda *_: OFFICE)
    done = big("allow", "c")
    assert done.returncode == 0, done.stderr
    assert open_to(ec2) == {f"{OFFICE}/32", "192.0.2.0/24"}
    rows = json.loads(big("allow", "--json", "c").stdout)
    assert {row["address"] for row in rows} == open_to(ec2)
    monkeypatch.setattr("starcluster.launch.ssh_access.getpass.getuser", lambda: "another")
    big("allow", "--from", "10.0.0.0/8", "c")
    assert open_to(ec2) == {f"{OFFICE}/32", "192.0.2.0/24", "10.0.0.0/8"}
    big("allow", "--from", "10.0.0.0/8", "--only", "c")
    assert open_to(ec2) == {"10.0.0.0/8"}
    assert big("allow", "--from", "10.0.0.0/99", "c").returncode == 2
    assert big("allow", "--from", "10.0.0.1", "d").returncode == 1


def test_a_cluster_made_before_stays_open_and_start_x_admits_the_caller(
    ec2: Ec2, move: Move, start: Callable[..., ClusterLifecycle]
) -> None:
    move(HOME)
    cluster = start(ssh_from="anywhere")
    assert open_to(ec2) == set(EVERYBODY)
    (group,) = ec2.security_groups("@sc-c")
    ssh = [rule for rule in group.permissions if rule.cidr_ip == EVERYBODY[1]]
    ec2.close_ports(group.id, ssh)
    instance = cluster.ec2.instances(cluster="c")[0]
    template = replace(TEMPLATE, ssh_from=("caller",))
    ssh_access.admit_caller(ec2, "c", template, instance)
    assert open_to(ec2) == {EVERYBODY[0]}
    ec2.close_ports(group.id, [rule for rule in group.permissions if rule not in ssh])
    ssh_access.admit_caller(ec2, "c", template, instance)
    assert open_to(ec2) == {f"{HOME}/32"}


def test_a_jump_host_needs_its_own_address(
    ec2: Ec2, start: Callable[..., ClusterLifecycle]
) -> None:
    """The nodes do not see the caller."""
    jump = {"ssh_proxy_jump": "me@bastion:2222"}
    with pytest.raises(ConfigError, match="ssh_from"):
        start(**jump)
    start(**jump, ssh_from="10.0.0.5")
    assert open_to(ec2) == {"10.0.0.5/32"}


def test_the_config_refuses_a_wrong_address(settings: config.Config) -> None:
    path = settings.path
    path.write_text(f"{path.read_text()}ssh_from = everybody\n")
    with pytest.raises(ConfigError, match="ssh_from = everybody"):
        config.load(path, {}).template("big")
