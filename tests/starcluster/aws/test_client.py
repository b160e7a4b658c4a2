"""EC2 against the moto server over HTTP: types in and out, pages, launches."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from botocore.loaders import JSONFileLoader

from starcluster.aws import client, prices, requests, responses
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import LaunchRequest, Place
from starcluster.config.sections import Permission
from starcluster.errors import AlreadyThere, InputError, NotFound, Unreachable
from starcluster.model import TAG_ALIAS, TAG_CLUSTER

IMAGE = "ami-785db401"


def request(**changes: object) -> LaunchRequest:
    values: dict[str, object] = {
        "image_id": IMAGE,
        "count": 1,
        "places": (Place(instance_type="t3.micro"),),
        "tags": {TAG_CLUSTER: "c", TAG_ALIAS: "master"},
    }
    return LaunchRequest(**(values | changes))  # type: ignore[arg-type]


def test_instances_are_launched_found_by_cluster_and_ended(ec2: Ec2) -> None:
    made = ec2.run(request(count=3))
    ec2.run(request(tags={TAG_CLUSTER: "other", TAG_ALIAS: "node001"}))
    ec2.run(request(tags={}))
    found = ec2.instances(cluster="c")
    assert {instance.id for instance in found} == {instance.id for instance in made}
    assert (found[0].cluster, found[0].alias) == ("c", "master")
    assert found[0].type == "t3.micro"
    assert found[0].private_ip
    assert found[0].zone.startswith("us-east-1")
    assert found[0].launched is not None
    assert not found[0].is_spot
    assert len(ec2.instances(cluster="*")) == 4
    assert len(ec2.instances()) == 5
    ids = [instance.id for instance in made]
    ec2.stop(ids[:1])
    assert ec2.instance(ids[0]).state == "stopped"
    ec2.start(ids[:1])
    ec2.reboot(ids[:1])
    ec2.tag(ids[:1], {"Name": "c-master"})
    assert ec2.instance(ids[0]).tags["Name"] == "c-master"
    ec2.terminate(ids)
    assert ec2.instances(cluster="c") == []
    assert {instance.state for instance in ec2.instances(ids)} == {"terminated"}


def test_what_is_not_there_raises_not_found_with_the_next_command(ec2: Ec2) -> None:
    for ask, next_command in (
        (lambda: ec2.instance("i-0123456789abcdef0"), "starcluster listinstances"),
        (lambda: ec2.volume("vol-0123456789abcdef0"), "starcluster listvolumes"),
        (lambda: ec2.image("ami-0123456789abcdef0"), "starcluster listimages"),
        (lambda: ec2.image("no such image"), "starcluster listimages"),
        (lambda: ec2.image("/no/such/parameter"), "choose another with -r"),
        (lambda: ec2.key_pairs(["none"]), "starcluster createkey"),
        (lambda: ec2.subnets(["subnet-0123"]), "choose another with -r"),
    ):
        with pytest.raises(NotFound) as caught:
            ask()
        assert next_command in caught.value.fix


def test_user_data_is_in_no_log_whatever_the_program_around_logs(
    ec2: Ec2, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ec2.run(request(user_data="#cloud-config\nthe private half"))
    secret = base64.b64encode(b"#cloud-config\nthe private half").decode()
    assert "the private half" not in caplog.text
    assert secret not in caplog.text
    assert secret.replace("+", "%2B").replace("=", "%3D") not in caplog.text


def test_a_request_that_botocore_refuses_is_the_callers_fault(ec2: Ec2) -> None:
    with pytest.raises(InputError, match=r"(?s)RunInstances.*ImageId"):
        ec2.call("ec2", "RunInstances", ImageId=5)


def test_all_pages_are_read(ec2: Ec2) -> None:
    made = {ec2.run(request())[0].id for _ in range(12)}
    config = {"PageSize": 5}
    found = ec2.pages("ec2", "DescribeInstances", "Reservations", PaginationConfig=config)
    assert {item["Instances"][0]["InstanceId"] for item in found} == made


def test_volumes_and_root_disks_are_encrypted(ec2: Ec2) -> None:
    made = ec2.run(request(root_device="/dev/sda1", root_size_gib=77))
    filters = {"attachment.instance-id": [made[0].id]}
    (disk,) = ec2.volumes(filters=filters)
    assert (disk.size_gib, disk.type, disk.encrypted) == (77, "gp3", True)
    volume = ec2.create_volume(9, made[0].zone, tags={"Name": "data"})
    assert (volume.encrypted, volume.tags) == (True, {"Name": "data"})
    ec2.wait_volume(volume.id, "available", limit_s=10)
    ec2.attach_volume(volume.id, made[0].id, "/dev/sdz")
    attached = ec2.volume(volume.id)
    assert (attached.instance_id, attached.device) == (made[0].id, "/dev/sdz")
    with pytest.raises(AlreadyThere):
        ec2.delete_volume(volume.id)
    ec2.terminate([made[0].id])
    ec2.delete_volume(volume.id)
    with pytest.raises(NotFound):
        ec2.volume(volume.id)


def test_user_data_arrives_and_is_in_no_repr(ec2: Ec2) -> None:
    text = "#cloud-config\nssh_keys: {ed25519_private: hidden}\n"
    wanted = request(user_data=text)
    assert "hidden" not in repr(wanted)
    (made,) = ec2.run(wanted)
    answer = ec2.call("ec2", "DescribeInstanceAttribute", InstanceId=made.id, Attribute="userData")
    assert base64.b64decode(answer["UserData"]["Value"]).decode() == text


def test_a_fleet_at_once_from_several_places(ec2: Ec2) -> None:
    subnets = ec2.subnets(vpc=ec2.default_vpc())
    places = tuple(Place(instance_type="t3.micro", subnet_id=subnet.id) for subnet in subnets[:2])
    template = ec2.create_template("starcluster/c", {"starcluster:cluster": "c"})
    wanted = request(count=2, places=places, spot=True, spot_bid=0.5)
    made, errors = ec2.run_fleet(replace(wanted, template_id=template))
    assert len(made) == 2
    assert errors == []
    assert {instance.cluster for instance in made} == {"c"}
    assert {instance.cluster for instance in ec2.instances([each.id for each in made])} == {"c"}


def test_arguments_of_a_launch_say_what_was_asked_for() -> None:
    wanted = request(
        places=(
            Place(instance_type="g5.xlarge", subnet_id="subnet-1"),
            Place(instance_type="g6.xlarge", zone="us-east-1b"),
        ),
        count=4,
        spot=True,
        spot_bid=0.123456,
        group_ids=("sg-1",),
        key_name="k",
        placement_group="@sc-c",
        token="t",  # noqa: S106
    )
    run = requests.run_arguments(wanted)
    assert run["MinCount"] == run["MaxCount"] == 4
    assert run["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"] == "0.123456"
    assert run["MetadataOptions"]["HttpTokens"] == "required"
    assert run["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert (run["SubnetId"], run["SecurityGroupIds"], run["KeyName"]) == ("subnet-1", ["sg-1"], "k")
    assert run["Placement"] == {"GroupName": "@sc-c"}
    assert run["ClientToken"] == "t"
    fleet = requests.fleet_arguments(wanted, "lt-1")
    assert fleet["Type"] == "instant"
    assert fleet["SpotOptions"]["AllocationStrategy"] == "price-capacity-optimized"
    overrides = fleet["LaunchTemplateConfigs"][0]["Overrides"]
    assert [override.get("SubnetId") or override["AvailabilityZone"] for override in overrides] == [
        "subnet-1",
        "us-east-1b",
    ]
    on_demand = requests.fleet_arguments(request(token=""), "lt-1")
    assert on_demand["OnDemandOptions"]["AllocationStrategy"] == "prioritized"
    assert "ClientToken" not in on_demand


@pytest.mark.parametrize("wanted", [True, False])
def test_a_public_address_is_said_at_the_interface(wanted: bool) -> None:
    place = Place(instance_type="t3.micro", subnet_id="subnet-1")
    run = requests.run_arguments(request(public_ip=wanted, places=(place,), group_ids=("sg-1",)))
    (interface,) = run["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is wanted
    assert (interface["SubnetId"], interface["Groups"]) == ("subnet-1", ["sg-1"])
    assert not {"SubnetId", "SecurityGroupIds"} & set(run)


def test_a_dry_run_that_passes_launches_nothing(ec2: Ec2) -> None:
    ec2.check_run(request())
    assert ec2.instances() == []


def test_groups_open_ports_once_and_their_members_to_one_another(ec2: Ec2) -> None:
    vpc = ec2.default_vpc()
    id = ec2.create_security_group("@sc-c", vpc=vpc, description="cluster c", tags={"a": "b"})
    with pytest.raises(AlreadyThere):
        ec2.create_security_group("@sc-c", vpc=vpc, description="again")
    ssh = Permission(name="ssh", from_port=22, to_port=22)
    ec2.open_ports(id, [ssh, ssh])
    (group,) = ec2.security_groups("@sc-*", vpc=vpc)
    assert (group.name, group.permissions) == ("@sc-c", (ssh,))
    answer = ec2.call("ec2", "DescribeSecurityGroups", GroupIds=[id])["SecurityGroups"][0]
    among = [rule for rule in answer["IpPermissions"] if rule["IpProtocol"] == "-1"]
    assert [pair["GroupId"] for rule in among for pair in rule["UserIdGroupPairs"]] == [id]
    ec2.delete_security_group(id)
    assert ec2.security_groups("@sc-*") == []


def test_addresses_of_version_6_are_taken() -> None:
    rule = responses.ip_permission(
        Permission(name="web", from_port=80, to_port=80, cidr_ip="2001:db8::/32")
    )
    assert rule["Ipv6Ranges"] == [{"CidrIpv6": "2001:db8::/32", "Description": "web"}]


def test_key_pairs(ec2: Ec2) -> None:
    made, private = ec2.create_key_pair("mine")
    assert made.fingerprint
    assert "PRIVATE KEY" in private
    with pytest.raises(AlreadyThere, match="us-east-1"):
        ec2.create_key_pair("mine")
    assert [pair.name for pair in ec2.key_pairs()] == ["mine"]
    ec2.delete_key_pair("mine")
    assert ec2.key_pairs() == []


def test_images_by_id_name_and_parameter(ec2: Ec2) -> None:
    image = ec2.image(IMAGE)
    assert image.id == IMAGE
    assert image.root_device
    assert image.architecture == "x86_64"
    (made,) = ec2.run(request())
    own = ec2.call("ec2", "CreateImage", InstanceId=made.id, Name="my image")["ImageId"]
    assert ec2.image("my image").id == own
    assert [image.id for image in ec2.images(owners=["self"])] == [own]
    ec2.call("ssm", "PutParameter", Name="/mine/ami", Value=own, Type="String")
    assert ec2.image("/mine/ami").id == own
    assert ec2.image("resolve:ssm:/mine/ami").id == own


def test_regions_zones_and_types(ec2: Ec2) -> None:
    assert "us-east-1" in [region.name for region in ec2.regions()]
    assert ec2.zones()[0].name == "us-east-1a"
    types = ec2.instance_types(["g4dn.xlarge", "g2.9xlarge", "t3.micro"])
    assert set(types) == {"g4dn.xlarge", "t3.micro"}
    gpu = types["g4dn.xlarge"]
    assert (gpu.gpus, gpu.gpu_name, gpu.vcpus, gpu.architecture) == (1, "NVIDIA T4", 4, "x86_64")
    assert types["t3.micro"].gpus == 0
    assert "t3.micro" in ec2.offered_types()
    assert "us-east-1a" in ec2.zones_offering(["t3.micro"])["t3.micro"]
    assert ec2.zones_offering(["g2.9xlarge"]) == {"g2.9xlarge": []}


def test_spot_prices_and_requests(ec2: Ec2) -> None:
    now = datetime.now(UTC)
    found = ec2.spot_prices(["t3.micro"], start=now - timedelta(days=1), end=now)
    assert found
    assert {price.type for price in found} == {"t3.micro"}
    assert all(price.price > 0 for price in found)
    lowest = prices.spot(ec2, ["t3.micro"])
    assert lowest["t3.micro"] == min(price.price for price in found)
    assert prices.spot(ec2, []) == {}
    assert ec2.spot_requests() == []


def test_all_regions_share_one_description_of_ec2(
    monkeypatch: pytest.MonkeyPatch, client_to: Callable[[str, str], Ec2]
) -> None:
    read = []
    load = JSONFileLoader.load_file

    def noted(self: JSONFileLoader, path: str) -> object:
        found = load(self, path)
        read.extend([path] if found else [])
        return found

    monkeypatch.setattr(JSONFileLoader, "load_file", noted)
    client._loader.cache_clear()
    regions = ("us-east-1", "eu-west-1", "us-east-1")
    clients = [client_to("http://127.0.0.1:9", region) for region in regions]
    assert {each.address() for each in clients} == {"http://127.0.0.1:9"}
    assert sum("/ec2/" in path and "service-2" in path for path in read) == 1
    places = clients[-1]._session._loader.search_paths
    assert len(places) == len(set(places))


def test_the_console(ec2: Ec2) -> None:
    (made,) = ec2.run(request())
    assert ec2.console(made.id)


def test_nobody_there_is_unreachable_and_says_nothing_of_instances(
    monkeypatch: pytest.MonkeyPatch, client_to: Callable[[str, str], Ec2]
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    with pytest.raises(Unreachable) as caught:
        client_to("http://127.0.0.1:9", "us-east1").instances()
    assert "127.0.0.1:9" in caught.value.what
    assert "'us-east-1'" in caught.value.fix
