"""Volumes are attached to the master once, each under a device name of its own."""

from __future__ import annotations

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import LaunchRequest, Place
from starcluster.config import Volume, with_devices
from starcluster.launch.volumes import attach
from starcluster.setup.hooks import volumes_for_plugins
from starcluster.setup.steps import SetupOptions, start_master
from starcluster.testing import ANY, FakeNode
from tests.starcluster.conftest import IMAGE


def volumes(**devices: tuple[str, str]) -> list[Volume]:
    return [
        Volume(name=name, volume_id=id, mount_path=f"/{name}", device=device)
        for name, (id, device) in devices.items()
    ]


def test_a_volume_gets_a_device_that_no_other_has() -> None:
    given = volumes(a=("v1", "/dev/sdf"), b=("v2", ""), c=("v3", "/dev/sdh"), d=("v4", ""))
    found = [volume.device for volume in with_devices(given)]
    assert found == ["/dev/sdf", "/dev/sdg", "/dev/sdh", "/dev/sdi"]


def test_sections_of_one_volume_have_its_device() -> None:
    given = volumes(a=("v1", ""), b=("v1", "/dev/sdz"), c=("v2", ""))
    assert [volume.device for volume in with_devices(given)] == ["/dev/sdz", "/dev/sdz", "/dev/sdf"]
    assert volumes_for_plugins(given)["a"]["device"] == "/dev/sdz"


def test_a_volume_with_two_partitions_is_attached_once(ec2: Ec2) -> None:
    disk = ec2.create_volume(1, "us-east-1a")
    place = Place(instance_type="t3.micro", zone="us-east-1a")
    request = LaunchRequest(image_id=IMAGE, count=1, places=(place,))
    (master,) = ec2.run(request)
    sections = [
        Volume(name=name, volume_id=disk.id, mount_path=f"/{name}", partition=partition)
        for name, partition in {"home": 1, "scratch": 2}.items()
    ]
    said: list[str] = []
    for _ in range(2):
        attach(ec2, sections, master, lambda _, what: said.append(what))
    found = ec2.volume(disk.id)
    assert (found.instance_id, found.device) == (master.id, "/dev/sdf")
    assert said == ["attaching home"]


@pytest.mark.parametrize("device", ["", "/dev/sdz"])
def test_the_master_receives_the_device_of_every_volume(device: str) -> None:
    """Without ``device`` in the config, the columns of VOLUMES must not shift."""
    master, read = FakeNode("master"), list[str]()

    def sh(_: object, words: list[str], stdin: str) -> str:
        read.append(stdin)
        return "fact number 1000\nfact root_key k\n"

    master.ssh.programs["sh"] = sh
    master.ssh.answer(ANY)
    options = SetupOptions(  # noqa: S604 - not of subprocess
        user="u", shell="bash", volumes=tuple(volumes(data=("v1", device)))
    )
    start_master(master, [], options)
    assert f"VOLUMES='v1 {device or '/dev/sdf'} - /data'" in read[0]
