"""An image of a node has its root volume without secrets, whatever AWS does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Image, Instance, LaunchRequest, Place
from starcluster.cli.app import App
from starcluster.cluster import image as imaging
from starcluster.cluster.image import check_image_name, make_image
from starcluster.commands.images import ebsimage
from starcluster.errors import AwsError, ClusterError, InputError, Interrupted, NotFound
from starcluster.model import TAG_ALIAS, TAG_CLUSTER
from starcluster.node.node import Node
from starcluster.testing import FakeNode, FakeShell
from tests.starcluster.conftest import IMAGE


@pytest.fixture
def instance(ec2: Ec2) -> Instance:
    """A node with a root and a data volume."""
    place = Place(instance_type="t3.micro", zone="us-east-1a")
    tags = {TAG_CLUSTER: "c", TAG_ALIAS: "node001", "team": "vision"}
    (made,) = ec2.run(LaunchRequest(image_id=IMAGE, count=1, places=(place,), tags=tags))
    volume = ec2.create_volume(3, "us-east-1a")
    ec2.attach_volume(volume.id, made.id, "/dev/sdf")
    return made


def cleaned(instance: Instance) -> tuple[Node, list[str]]:
    """Return a node, and the list of actions on its secrets."""
    done: list[str] = []

    def image(shell: FakeShell, argv: list[str], stdin: str) -> tuple[int, str]:
        done.append(stdin.partition("\n")[0])
        return 0, ""

    node = FakeNode(shell=FakeShell(name="node001", programs={"sh": image}))
    node.instance = instance
    return node, done


def test_secrets_are_away_while_the_snapshot_begins(
    ec2: Ec2, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, done = cleaned(instance)
    monkeypatch.setattr(imaging, "backoff_delays", lambda: iter([0.0] * 9))
    begun = Ec2.image
    looks = []

    def image(self: Ec2, reference: str) -> Image:  # pending at first
        looks.append(list(done))
        found = begun(self, reference)
        if len(looks) == 1:
            return Image(id=found.id, name="", state="pending", architecture="", root_device="")
        return found

    asked: dict[str, Any] = {}
    call = Ec2.call

    def noted(self: Ec2, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        asked[operation] = arguments
        return call(self, service, operation, **arguments)

    monkeypatch.setattr(Ec2, "image", image)
    monkeypatch.setattr(Ec2, "call", noted)
    made = make_image(ec2, node, "mine (1)", "for tests")
    assert done == ["ACTION=hide", "ACTION=restore"]
    assert looks[:2] == [["ACTION=hide"]] * 2
    assert (made.name, made.state, len(made.snapshots)) == ("mine (1)", "available", 1)
    (listed,) = ec2.images(name="mine (1)", owners=["self"])
    assert listed.snapshots == made.snapshots
    assert asked["CreateImage"]["NoReboot"] is True
    data = {"DeviceName": "/dev/sdf", "NoDevice": ""}  # excluded
    assert asked["CreateImage"]["BlockDeviceMappings"] == [data]
    for kind in ("image", "snapshot"):
        filters = [{"Name": "resource-type", "Values": [kind]}]
        tags = ec2.call("ec2", "DescribeTags", Filters=filters)["Tags"]
        assert sorted((tag["Key"], tag["Value"]) for tag in tags) == [
            ("Name", "mine (1)"),
            (TAG_CLUSTER, "c"),
            ("team", "vision"),
        ]


def test_secrets_come_back_where_aws_makes_no_image(
    ec2: Ec2, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imaging, "backoff_delays", lambda: iter([0.0] * 9))
    node, done = cleaned(replace(instance, id="i-0123456789abcdef0"))
    with pytest.raises(NotFound):
        make_image(ec2, node, "mine")
    assert done == ["ACTION=hide", "ACTION=restore"]
    node, done = cleaned(instance)
    failed = Image(id="ami-1", name="", state="failed", architecture="", root_device="")
    monkeypatch.setattr(Ec2, "create_image", lambda *_, **__: "ami-1")
    monkeypatch.setattr(Ec2, "image", lambda *_: failed)
    with pytest.raises(AwsError, match=r"ami-1.*\bfailed\b"):
        make_image(ec2, node, "mine")
    assert done == ["ACTION=hide", "ACTION=restore"]


def test_names_that_aws_takes() -> None:
    check_image_name("my-image (2026/01) [a.b_c'@]")
    for name in ("ab", "x" * 129, "a:b", "über"):
        with pytest.raises(InputError):
            check_image_name(name)


def test_an_instance_that_nobody_can_clean_is_not_imaged(ec2: Ec2) -> None:
    place = Place(instance_type="t3.micro")
    (made,) = ec2.run(LaunchRequest(image_id=IMAGE, count=1, places=(place,)))
    app = App(config_path=None, region="us-east-1", debug=False)
    app.__dict__["ec2"] = ec2
    done = CliRunner().invoke(ebsimage, [made.id, "mine"], obj=app)
    assert isinstance(done.exception, ClusterError)
    assert made.id in done.exception.what
    assert "starcluster listclusters" in done.exception.fix
    done = CliRunner().invoke(ebsimage, [made.id, "no:name"], obj=app)
    assert isinstance(done.exception, InputError)


@pytest.mark.parametrize("call", ["image", "progress_of"])
def test_an_interruption_names_the_image_that_aws_creates(
    ec2: Ec2, instance: Instance, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    node, done = cleaned(instance)
    pending = Image(
        id="ami-1", name="", state="pending", architecture="", root_device="", snapshots=("snap-1",)
    )

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt("by SIGTERM")

    monkeypatch.setattr(imaging, "backoff_delays", lambda: iter([0.0] * 9))
    monkeypatch.setattr(Ec2, "create_image", lambda *_, **__: "ami-1")
    monkeypatch.setattr(Ec2, "tag", lambda *_: None)
    monkeypatch.setattr(Ec2, "image", lambda *_: pending)
    monkeypatch.setattr(Ec2, call, interrupted)
    with pytest.raises(Interrupted, match=r"by SIGTERM\n.*starcluster removeimage ami-1"):
        make_image(ec2, node, "mine")
    assert done == ["ACTION=hide", "ACTION=restore"]
