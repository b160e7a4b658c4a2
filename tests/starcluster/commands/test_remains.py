"""What stays and costs after stop and terminate, and removeimage."""

from __future__ import annotations

import pytest

from starcluster.aws.disks import priced
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import EbsVolume, Image, LaunchRequest, Place
from starcluster.balance.loop import Balancer
from starcluster.config import config
from starcluster.errors import AlreadyThere
from starcluster.launch.origin import Origin, origin_tags
from starcluster.model import TAG_ALIAS, TAG_CLUSTER, TAG_NAME
from tests.starcluster.conftest import IMAGE, Run
from tests.starcluster.front import Front


@pytest.fixture(autouse=True)
def no_placement_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ec2, "placement_groups", lambda self, name: [])  # moto has none


def launch(ec2: Ec2, alias: str = "master", image: str = IMAGE, zone: str = "us-east-1a") -> str:
    tags = {TAG_CLUSTER: "big", TAG_ALIAS: alias, **origin_tags(Origin(template="big"))}
    (subnet, *_) = ec2.subnets(zones=[zone])
    place = Place(instance_type="t3.micro", subnet_id=subnet.id)
    return ec2.run(LaunchRequest(image_id=image, count=1, places=(place,), tags=tags))[0].id


def image_of(ec2: Ec2, instance: str, name: str = "mine") -> Image:
    tags = {TAG_NAME: name, TAG_CLUSTER: "big"}
    return ec2.image(ec2.create_image(instance, name, tags=tags))


def volume(kind: str, gib: int, **more: int) -> EbsVolume:
    return EbsVolume(
        id="vol-1", state="in-use", size_gib=gib, zone="z", type=kind, encrypted=True, **more
    )


def test_disks_cost_their_size_at_the_price_of_their_type() -> None:
    prices = {"gp3": 0.08, "io2": 0.125}
    assert str(priced([volume("gp3", 100), volume("gp3", 50)], prices)) == "$12.00 per month"
    both = str(priced([volume("gp3", 100), volume("st1", 50)], prices))
    assert both == "$8.00 per month plus st1 (price unknown)"
    assert str(priced([volume("st1", 50)], prices)) == "price unknown"
    for fast in (volume("io2", 8), volume("gp3", 8, iops=4000), volume("gp3", 8, throughput=250)):
        assert str(priced([fast], prices)).endswith(" plus provisioned IOPS and throughput")
    assert "IOPS" not in str(priced([volume("gp3", 8, iops=3000, throughput=125)], prices))


def test_stop_says_what_the_stopped_disks_cost(big: Run, ec2: Ec2, front: Front) -> None:
    ids = [launch(ec2), launch(ec2, "node001")]
    disks = ec2.volumes(filters={"attachment.instance-id": ids})
    gib = sum(disk.size_gib for disk in disks)
    front.monthly = {disks[0].type: 0.1}
    done = big("stop", "-c", "big")
    assert done.returncode == 0, done.stderr
    assert f"AWS bills its 2 disks, {gib} GiB, but no instance: ${gib * 0.1:.2f} per" in done.stdout
    front.monthly = {}
    assert "but no instance: price unknown." in big("stop", "-c", "big").stdout


def test_terminate_names_what_stays_and_costs(
    big: Run, ec2: Ec2, settings: config.Config, front: Front
) -> None:
    data = ec2.create_volume(200, "us-east-1a", tags={"Name": "data"})
    other = ec2.create_volume(10, "us-east-1a")
    path = settings.path
    text = path.read_text().replace("[cluster big]\n", "[cluster big]\nvolumes = data\n")
    path.write_text(f"{text}[volume data]\nvolume_id = {data.id}\nmount_path = /data\n")
    id = launch(ec2)
    ec2.attach_volume(other.id, id, "/dev/sdz")
    attached = ec2.volumes(filters={"attachment.instance-id": [id]})
    (root,) = (disk for disk in attached if disk.id != other.id)
    image = image_of(ec2, id)
    address = ec2.call("ec2", "AllocateAddress", Domain="vpc")
    ec2.call("ec2", "AssociateAddress", InstanceId=id, AllocationId=address["AllocationId"])
    done = big("terminate", "-c", "big")
    assert done.returncode == 0, done.stderr
    kept = done.stdout[done.stdout.index("Still there, and billed by AWS:") :]
    remove = f"starcluster removevolume {data.id}"
    assert f"volume {data.id} (data), 200 GiB gp3, $16.00 per month: {remove}" in kept
    assert f"volume {other.id}, 10 GiB gp3, $0.80 per month" in kept
    assert root.id not in kept
    assert f"image {image.id} (mine)" in kept
    assert image.snapshots[0] in kept
    assert f"elastic address {address['PublicIp']}" in kept
    assert address["AllocationId"] in kept
    assert front.monthly


def test_loadbalance_names_what_stays_after_it_terminated_the_cluster(
    big: Run, ec2: Ec2, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: Balancer) -> str:
        self.lifecycle.terminate()
        return "terminated"

    monkeypatch.setattr(Balancer, "run", run)
    id = launch(ec2)
    image = image_of(ec2, id)
    done = big("loadbalance", "--kill-cluster", "big")
    assert done.returncode == 0, done.stderr
    assert ec2.instances() == []
    kept = done.stdout[done.stdout.index("Still there, and billed by AWS:") :]
    assert f"image {image.id} (mine)" in kept


def test_terminate_is_silent_where_nothing_stays(big: Run, ec2: Ec2) -> None:
    launch(ec2)
    done = big("terminate", "-c", "big")
    assert done.returncode == 0, done.stderr
    assert "Still there" not in done.stdout


def test_an_image_is_removed_with_its_snapshots_once_nothing_uses_it(
    big: Run, ec2: Ec2, settings: config.Config
) -> None:
    first = launch(ec2)
    image = image_of(ec2, first)
    used = launch(ec2, "node001", image.id)
    text = settings.path.read_text()
    settings.path.write_text(text.replace("t3.micro\n", f"t3.micro:{image.id}:1, t3.micro\n"))
    done = big("removeimage", "-c", image.id)
    assert done.returncode == 1
    assert "cluster big, template big" in done.stderr
    ec2.terminate([used])
    settings.path.write_text(f"{text}[cluster broken]\ncluster_sise = 2\nmaster_image_id = mine\n")
    done = big("removeimage", "-c", image.id)
    assert (done.returncode, "template broken" in done.stderr) == (1, True)
    settings.path.write_text(text)
    assert big("removeimage", image.id, answer="n\n").returncode == 1
    assert ec2.images([image.id])
    done = big("removeimage", "-c", image.id)
    assert done.returncode == 0, done.stderr
    left = ec2.pages("ec2", "DescribeSnapshots", "Snapshots", OwnerIds=["self"])
    assert image.snapshots[0] not in [snapshot["SnapshotId"] for snapshot in left]
    assert ec2.images(owners=["self"]) == []


def test_an_image_without_its_snapshots_or_only_in_words(big: Run, ec2: Ec2) -> None:
    instance = launch(ec2)
    image = image_of(ec2, instance)
    ec2.terminate([instance])
    done = big("removeimage", "--pretend", image.id)
    assert (done.returncode, image.snapshots[0] in done.stdout) == (0, True)
    assert ec2.images([image.id])
    done = big("ri", "-c", "--keep-image-data", image.id)
    assert done.returncode == 0, done.stderr
    assert f"AWS still bills its snapshots: {image.snapshots[0]}" in done.stdout
    left = ec2.pages("ec2", "DescribeSnapshots", "Snapshots", OwnerIds=["self"])
    assert image.snapshots[0] in [snapshot["SnapshotId"] for snapshot in left]
    assert ec2.images(owners=["self"]) == []


def test_only_own_images_are_removed(big: Run) -> None:
    assert big("removeimage", "mine").returncode == 2
    done = big("removeimage", "-c", IMAGE)
    assert (done.returncode, IMAGE in done.stderr) == (1, True)


def test_a_snapshot_that_cannot_be_deleted_is_named(
    big: Run, ec2: Ec2, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = image_of(ec2, launch(ec2))
    ec2.terminate([instance.id for instance in ec2.instances()])

    def refused(self: Ec2, id: str) -> None:
        raise AlreadyThere(f"{id} is in use by ami-2", code="InvalidSnapshot.InUse")

    monkeypatch.setattr(Ec2, "delete_snapshot", refused)
    done = big("removeimage", "-c", image.id)
    assert done.returncode == 1
    assert f"aws ec2 delete-snapshot --snapshot-id {image.snapshots[0]}" in done.stderr
