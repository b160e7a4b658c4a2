"""File systems of EFS on real hosts behind a fake EC2: real TLS; only NFS is a stand-in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.filesystems import efs_name
from starcluster.config.sections import AwsSettings
from tests.on_hosts.user import User
from tests.testbed.cloud import IMAGE, REGION, ZONE, Cloud
from tests.testbed.efs import Authority, MountTarget

pytestmark = [pytest.mark.sge, pytest.mark.slow]

CONFIG = """
[aws info]
aws_access_key_id = AKIAFAKE
aws_secret_access_key = fake
[cluster small]
keyname = mykey
cluster_size = 2
node_instance_type = g4dn.xlarge
node_image_id = {image}
volumes = shared, homes
userdata_scripts = ~/.starcluster/first_boot
[volume shared]
efs_id = {shared}
mount_path = /shared
[volume homes]
efs_id = {homes}
mount_path = /home
tls = false
"""


class Efs:
    """Two EFS file systems in the account of a cloud: ``shared`` by TLS, and ``homes``."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.call(self._create)
        self.targets = {
            name: MountTarget(cloud.fabric, name, f"172.31.250.{number}")
            for number, name in enumerate(self.ids, 10)
        }
        self.authority = Authority(cloud.folder / "ca")
        self.names = {name: efs_name(id, REGION) for name, id in self.ids.items()}
        self.targets["homes"].serve()

    def serve(self, pem: str) -> None:
        """Start ``shared`` with a key and certificate."""
        self.targets["shared"].serve(pem)

    def call(self, function: Callable[[Ec2], Any]) -> Any:
        settings = AwsSettings(
            aws_access_key_id="AKIAFAKE",
            aws_secret_access_key="fake",  # noqa: S106
            aws_endpoint_url=self.cloud.endpoint,
        )
        return self.cloud.call(lambda: function(Ec2(settings, REGION)))

    def _create(self, ec2: Ec2) -> None:
        vpc = ec2.default_vpc()
        (subnet,) = ec2.subnets(vpc=vpc, zones=[ZONE])
        self.group = ec2.create_security_group("of-efs", vpc=vpc, description="mount targets")
        self.ids = {}
        for name in ("shared", "homes"):
            made = ec2.call("efs", "CreateFileSystem", CreationToken=name)
            self.ids[name] = made["FileSystemId"]
            ec2.call(
                "efs",
                "CreateMountTarget",
                FileSystemId=made["FileSystemId"],
                SubnetId=subnet.id,
                SecurityGroups=[self.group],
            )

    def open(self, ec2: Ec2, cidr: str) -> None:
        rule = {"IpProtocol": "tcp", "FromPort": 2049, "ToPort": 2049}
        rules = [{**rule, "IpRanges": [{"CidrIp": cidr}]}]
        ec2.call("ec2", "AuthorizeSecurityGroupIngress", GroupId=self.group, IpPermissions=rules)

    def first_boot(self) -> str:
        """Return a script that makes up for the DNS and the public authorities of a VPC."""
        hosts = "".join(
            f"{self.targets[name].node.ip} {host}\n" for name, host in self.names.items()
        )
        ca = (self.authority.folder / "ca.pem").read_text()
        return (
            f"#!/bin/sh\ncat >> /etc/hosts << END\n{hosts}END\n"
            f"cat > /usr/local/share/ca-certificates/test.crt << END\n{ca}END\n"
            "update-ca-certificates\n"
        )


@pytest.fixture
def efs() -> Iterator[Efs]:
    with Cloud() as cloud:
        made = Efs(cloud)
        folder = cloud.home / ".starcluster"
        folder.mkdir()
        (folder / "first_boot").write_text(made.first_boot())
        (folder / "config").write_text(CONFIG.format(image=IMAGE, **made.ids))
        (folder / "config").chmod(0o600)
        yield made


def test_all_nodes_mount_file_systems_of_efs_themselves(efs: Efs) -> None:
    user = User(efs.cloud)
    user.types("createkey", "mykey", "-o", str(efs.cloud.home / "mykey.pem"), "-a")
    refused = user.types("start", "gpucluster", status=2).stderr
    assert f"--group-id {efs.group} --protocol tcp --port 2049 --cidr 172.31" in refused
    assert not efs.cloud.nodes()
    efs.call(lambda ec2: efs.open(ec2, "172.31.0.0/16"))

    efs.serve(efs.authority.issue("another.example.org"))
    errors = user.types("start", "gpucluster", status=1).stderr
    assert re.search(rf"volume shared \({efs.ids['shared']}\): TLS .*ertificate", errors), errors
    efs.serve(efs.authority.issue(efs.names["shared"]))
    user.types("start", "-x", "gpucluster")
    hosts = user.hosts()
    hosts["master"].run("sh", "-c", "echo from the master > /shared/note; chmod 666 /shared/note")
    assert hosts["node001"].run("cat", "/shared/note").stdout == "from the master\n"
    hosts["node001"].run("sh", "-c", "echo from node001 >> /shared/note")
    kept = efs.targets["shared"].node.inside("/srv/note")
    assert kept.read_text() == "from the master\nfrom node001\n"
    assert (efs.targets["homes"].node.inside("/srv/sgeadmin/.ssh/id_ed25519")).is_file()
    exports = hosts["master"].inside("/etc/exports.d/starcluster.exports").read_text()
    assert not re.search(r"^/(home|shared) ", exports, re.MULTILINE)
    cannot_be_replaced_by_a_user(hosts["node001"])

    fstab = {alias: host.inside("/etc/fstab").read_text() for alias, host in hosts.items()}
    user.types("restart", "gpucluster")
    for alias, host in user.hosts().items():
        assert "from node001" in host.run("cat", "/shared/note").stdout
        assert host.inside("/etc/fstab").read_text() == fstab[alias]
    user.types("addnode", "gpucluster")
    assert "from node001" in user.hosts()["node002"].run("cat", "/shared/note").stdout

    efs.targets["homes"].node.kill()
    words = user.types("addnode", "gpucluster", status=1).stderr
    assert re.search(rf"volume homes \({efs.ids['homes']}\): .*2049", words), words
    output = user.types("terminate", "-c", "gpucluster").stdout
    assert f"EFS {efs.ids['shared']} (shared)" in output
    assert kept.is_file()


def cannot_be_replaced_by_a_user(host: Any) -> None:
    """While the tunnel is down, no user can listen on its port and serve files to root."""
    listens = "import socket; socket.create_server(('127.0.0.1', 334))"
    assert host.run("pkill", "-f", "^stunnel4 /etc/starcluster/efs/").returncode == 0
    done = host.run("python3", "-c", listens, uid=1001)
    assert "Permission denied" in done.stderr
