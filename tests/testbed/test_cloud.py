"""The fake EC2: its instances are real hosts, and it can produce faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.testbed.cloud import IMAGE, REGION, Cloud
from tests.testbed.test_cell import traces
from tests.waiting import until

pytestmark = pytest.mark.sge


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with Cloud() as made:
        yield made


def client(cloud: Cloud) -> Any:
    settings = Config(retries={"max_attempts": 0})
    return boto3.client(
        "ec2",
        endpoint_url=cloud.endpoint,
        region_name=REGION,
        aws_access_key_id="x",
        aws_secret_access_key="x",  # noqa: S106 - of no account
        config=settings,
    )


def key_pair(cloud: Cloud, ec2: Any, name: str) -> str:
    """Create a key pair; return the path of its private key."""
    path = cloud.home / name
    path.write_text(ec2.create_key_pair(KeyName=name, KeyType="ed25519")["KeyMaterial"])
    path.chmod(0o600)
    return str(path)


def states(ec2: Any, ids: list[str]) -> set[str]:
    found = ec2.describe_instances(InstanceIds=ids)["Reservations"]
    return {each["State"]["Name"] for row in found for each in row["Instances"]}


def launched(ec2: Any, count: int, **more: Any) -> list[str]:
    made = ec2.run_instances(
        ImageId=IMAGE, MinCount=count, MaxCount=count, InstanceType="g4dn.12xlarge", **more
    )
    ids = [each["InstanceId"] for each in made["Instances"]]
    until(lambda: states(ec2, ids) == {"running"})
    return ids


def ssh(cloud: Cloud, key: str, host: str, command: str, *, host_key: str = "") -> Any:
    known = cloud.home / "known_hosts"
    known.write_text(f"{host} {host_key}\n" if host_key else "")
    strict = "yes" if host_key else "no"
    options = ["-o", f"StrictHostKeyChecking={strict}", "-o", f"UserKnownHostsFile={known}"]
    options += ["-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-i", key]
    return cloud.run("ssh", *options, f"root@{host}", command)


def test_an_instance_is_a_host_with_the_host_key_of_its_user_data(cloud: Cloud) -> None:
    def use() -> None:
        ec2 = client(cloud)
        key = key_pair(cloud, ec2, "mine")
        host = ed25519.Ed25519PrivateKey.generate()
        private = host.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        ).decode()
        public = host.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        config = {"disable_root": False, "ssh_keys": {"ed25519_private": private}}
        data = "#cloud-config\n" + json.dumps(config)
        (made,) = launched(ec2, 1, KeyName="mine", UserData=data)
        facts = ec2.describe_instances(InstanceIds=[made])["Reservations"][0]["Instances"][0]
        command = "cat /etc/sge-gpus; hostname -I; nvidia-smi -L | wc -l; command -v qconf"
        done = ssh(cloud, key, facts["PublicIpAddress"], command, host_key=public.decode())
        assert done.returncode == 0, done.stderr
        assert done.stdout.split("\n")[0] == "count = 4"
        addresses = {facts["PrivateIpAddress"], facts["PublicIpAddress"]}
        own = done.stdout.split("\n")[1].split()
        assert {each for each in own if ":" not in each} == addresses
        assert done.stdout.split("\n")[2:4] == ["4", "/usr/bin/qconf"]
        ec2.terminate_instances(InstanceIds=[made])
        assert private.split("\n")[1] not in (cloud.folder / "calls.jsonl").read_text()

    cloud.call(use)


def test_root_may_not_log_in_unless_user_data_says_so(cloud: Cloud) -> None:
    def use() -> None:
        ec2 = client(cloud)
        key = key_pair(cloud, ec2, "root")
        (made,) = launched(ec2, 1, KeyName="root")
        (node,) = cloud.nodes().values()
        done = ssh(cloud, key, node.ip, "id -u")
        assert (done.returncode, "log in as the user" in done.stdout) == (142, True)
        ec2.terminate_instances(InstanceIds=[made])

    cloud.call(use)


def test_stop_start_reboot_and_terminate_are_those_of_the_host(cloud: Cloud) -> None:
    def use() -> None:
        ec2 = client(cloud)
        ids = launched(ec2, 2)
        first, second = (cloud.nodes()[each] for each in ids)
        assert first.run("bash", "-c", f"exec 3<>/dev/tcp/{second.ip}/22").returncode == 0
        first.run("touch", "/root/kept", "/run/lost")
        public = first.public_ip
        ec2.stop_instances(InstanceIds=ids[:1])
        assert states(ec2, ids[:1]) == {"stopped"}
        assert set(cloud.nodes()) == {ids[1]}
        ec2.start_instances(InstanceIds=ids[:1])
        until(lambda: states(ec2, ids) == {"running"})
        first = cloud.nodes()[ids[0]]
        assert first.run("ls", "/root/kept").returncode == 0
        assert first.run("ls", "/run/lost").returncode != 0
        assert first.public_ip != public
        ec2.reboot_instances(InstanceIds=ids[1:])
        until(lambda: ids[1] in cloud.nodes() and cloud.nodes()[ids[1]].pid != second.pid)
        ec2.terminate_instances(InstanceIds=ids)
        assert states(ec2, ids) == {"terminated"}
        assert not cloud.nodes()
        assert not list(cloud.fabric.work.glob("ip-*"))

    cloud.call(use)


def test_a_directory_is_mounted_by_nfs_where_it_is_exported(cloud: Cloud) -> None:
    def use() -> None:
        ec2 = client(cloud)
        ids = launched(ec2, 2)
        server, host = (cloud.nodes()[each] for each in ids)
        mount = ("mount", "-t", "nfs", f"{server.ip}:/home", "/home")
        assert "refused" in host.run(*mount).stderr
        server.run("service", "nfs-kernel-server", "start")
        assert "denied" in host.run(*mount).stderr
        line = f"/home {host.ip}(rw,no_root_squash,no_subtree_check)"
        server.run("sh", "-c", f"echo '{line}' > /etc/exports")
        assert "denied" in host.run(*mount).stderr
        assert server.run("exportfs", "-ra").stderr == ""
        done = host.run(*mount)
        assert done.returncode == 0, done.stderr
        host.run("touch", "/home/there")
        assert server.run("ls", "/home/there").returncode == 0
        ec2.terminate_instances(InstanceIds=ids)

    cloud.call(use)


def test_faults_are_those_that_were_asked_for(cloud: Cloud) -> None:
    def use() -> None:
        ec2 = client(cloud)
        before = len(cloud.calls())
        cloud.fail("DescribeRegions", "RequestLimitExceeded", times=2)
        for _ in range(2):
            with pytest.raises(ClientError, match="RequestLimitExceeded"):
                ec2.describe_regions()
        ec2.describe_regions()
        rows = cloud.calls()[before:]
        assert [row["action"] for row in rows] == ["DescribeRegions"] * 3
        assert [row["error"] != "" for row in rows] == [True, True, False]
        cloud.no_capacity({"type": "g4dn.12xlarge", "market": "on-demand"})
        with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
            launched(ec2, 1)
        cloud.no_capacity()

    cloud.call(use)


def test_a_fleet_launches_what_its_template_says_where_there_is_capacity(cloud: Cloud) -> None:
    def use() -> None:
        ec2 = client(cloud)
        group = ec2.create_security_group(GroupName="fleet", Description="x")["GroupId"]
        subnets = {row["AvailabilityZone"]: row["SubnetId"] for row in _subnets(ec2)}
        ec2.create_launch_template(
            LaunchTemplateName="fleet",
            LaunchTemplateData={"ImageId": IMAGE, "SecurityGroupIds": [group]},
        )
        overrides = [
            {"InstanceType": "g4dn.xlarge", "SubnetId": subnets[zone]} for zone in sorted(subnets)
        ]
        cloud.no_capacity({"zone": "us-east-1a", "market": "spot"})
        made = ec2.create_fleet(
            Type="instant",
            TargetCapacitySpecification={
                "TotalTargetCapacity": 2,
                "DefaultTargetCapacityType": "spot",
            },
            SpotOptions={"AllocationStrategy": "price-capacity-optimized"},
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateName": "fleet",
                        "Version": "$Latest",
                    },
                    "Overrides": overrides,
                }
            ],
        )
        cloud.no_capacity()
        assert [row["ErrorCode"] for row in made["Errors"]] == ["InsufficientInstanceCapacity"]
        ids = [each for row in made["Instances"] for each in row["InstanceIds"]]
        until(lambda: states(ec2, ids) == {"running"})
        found = ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"]
        assert {each["Placement"]["AvailabilityZone"] for each in found} == {"us-east-1b"}
        assert {each["SecurityGroups"][0]["GroupId"] for each in found} == {group}
        assert {each["InstanceLifecycle"] for each in found} == {"spot"}
        with pytest.raises(ClientError, match="DependencyViolation"):
            ec2.delete_security_group(GroupId=group)
        ec2.terminate_instances(InstanceIds=ids)
        ec2.delete_security_group(GroupId=group)

    cloud.call(use)


def _subnets(ec2: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ec2.describe_subnets()["Subnets"]
    return found


def test_nothing_is_left_behind() -> None:
    before = traces()
    with Cloud() as made:
        made.call(lambda: launched(client(made), 1))
        pids = [node.pid for node in made.nodes().values()]
    assert traces() == before
    assert not made.folder.exists()
    assert len(pids) == 1
