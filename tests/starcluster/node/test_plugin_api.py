"""What plugins for StarCluster 0.95 import and call."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import starcluster.setup
from starcluster import exception, static, threadpool, utils
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import LaunchRequest, Place
from starcluster.errors import ClusterError, NotFound, SetupError, SshError
from starcluster.model import TAG_ALIAS, TAG_CLUSTER
from starcluster.node import Node
from starcluster.templates import sge
from starcluster.testing import FakeNode
from tests.starcluster.conftest import IMAGE

JOIN = (Path(starcluster.setup.__file__).parent / "sh" / "join.sh").read_text()


def test_a_node_knows_its_cluster_in_ec2(ec2: Ec2) -> None:
    place = Place(instance_type="t3.micro", zone="us-east-1a")
    tags = {TAG_CLUSTER: "gpu", TAG_ALIAS: "master"}
    request = LaunchRequest(image_id=IMAGE, count=1, places=(place,), tags=tags)
    (instance,) = ec2.run(request)
    shell: Any = SimpleNamespace(key=Path("/keys/mykey.pem"))
    node = Node(instance, lambda _: shell, ec2)
    with pytest.raises(ClusterError, match="@sc-gpu"):
        node.parent_cluster  # noqa: B018 - the property raises
    ec2.create_security_group("@sc-gpu", vpc=ec2.default_vpc(), description="x")
    assert node.parent_cluster.name == "@sc-gpu"
    assert [group.name for group in node.cluster_groups] == ["@sc-gpu"]
    assert node.region.name == "us-east-1"
    assert node.ec2 is ec2
    assert node.key_location == "/keys/mykey.pem"
    node.add_tag("owner", "ann")
    node.add_tag("flag")
    assert (node.tags["owner"], node.tags["flag"]) == ("ann", "")
    assert ec2.instance(instance.id).tags["owner"] == "ann"


def test_a_node_without_ec2_says_so() -> None:
    with pytest.raises(ClusterError, match=r"node001: .*EC2"):
        FakeNode("node001").add_tag("a", "b")


def test_groups_and_programs_of_a_node() -> None:
    node = FakeNode("node001")
    node.add_user("ann")
    node.ssh.answer("usermod")
    node.add_user_to_group("ann", "docker")
    assert "docker:" in node.ssh.read_file("/etc/group")
    assert node.ssh.ran[-1] == "usermod --append --groups docker ann"
    count = len(node.ssh.ran)
    node.add_user_to_group("ann", "docker")
    assert not any("groupadd" in line for line in node.ssh.ran[count:])
    assert node.ssh.has_required(["usermod", "useradd"])
    assert not node.ssh.has_required(["usermod", "ipcluster"])


def test_passwords_and_chunks() -> None:
    found = {utils.generate_passwd(16) for _ in range(50)}
    assert len(found) == 50
    assert all(len(word) == 16 and word.isalnum() for word in found)
    assert list(utils.chunk_list(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(utils.chunk_list([])) == []


def test_a_pool_of_the_original() -> None:
    pool = threadpool.get_thread_pool(size=3, disable_threads=False)
    for number in range(4):
        pool.simple_job(lambda n: n * n, (number,), jobid=str(number))
    assert pool.wait(numtasks=4) == [0, 1, 4, 9]

    def fail() -> None:
        raise SshError("lost")

    pool = threadpool.get_thread_pool(10, None, True)
    pool.simple_job(fail, (), jobid="node001")
    with pytest.raises(exception.ThreadPoolException) as caught:
        pool.wait(numtasks=1)
    assert isinstance(caught.value, SetupError)
    assert "lost" in caught.value.msg


def test_errors_have_their_old_names() -> None:
    error = exception.PluginError("no license")
    assert (error.msg, error.explain()) == ("no license", "PluginError: no license")
    assert issubclass(NotFound, exception.AMIDoesNotExist)
    assert all(
        issubclass(getattr(exception, name), exception.BaseException) for name in exception.__all__
    )
    assert {"RemoteCommandFailed", "ClusterDoesNotExist", "AWSError"} <= set(exception.__all__)


def test_constants() -> None:
    assert static.SECURITY_GROUP_TEMPLATE % "gpu" == "@sc-gpu"
    assert static.STARCLUSTER_CFG_FILE.endswith("/.starcluster/config")


def test_a_parallel_environment() -> None:
    lines = (sge.sge_pe_template % ("mpi", 8)).splitlines()
    values = dict(line.split(None, 1) for line in lines)
    assert (values["pe_name"], values["slots"], values["control_slaves"]) == ("mpi", "8", "TRUE")


def test_the_paths_of_the_original_on_a_node(tmp_path: Path) -> None:
    function = JOIN[JOIN.index("paths_of_original()") : JOIN.index('[ -z "$ROOT_KEY" ]')]
    root, cell = tmp_path / "sge6", tmp_path / "gridengine"
    (cell / "default" / "common").mkdir(parents=True)
    given = f"SGE_ROOT={cell} SGE_CELL=default SGE_ARCH=lx-arm64\n"
    for _ in range(2):
        text = f"set -eu\n{given}{function}\npaths_of_original {root}\n"
        subprocess.run(["sh"], input=text, text=True, check=True)
    for arch in ("linux-x64", "lx24-amd64", "lx-amd64", "lx-arm64"):
        assert (root / "bin" / arch / "env").exists()
    settings = f". {root}/default/common/settings.sh; echo $SGE_ROOT $SGE_CELL"
    done = subprocess.run(["sh", "-c", settings], capture_output=True, text=True, check=True)
    assert done.stdout == f"{cell} default\n"


def test_an_installation_of_the_original_is_left_alone(tmp_path: Path) -> None:
    function = JOIN[JOIN.index("paths_of_original()") : JOIN.index('[ -z "$ROOT_KEY" ]')]
    (tmp_path / "sge6" / "bin").mkdir(parents=True)
    given = f"set -eu\nSGE_ROOT={tmp_path}/none SGE_CELL=default SGE_ARCH=x\n"
    text = f"{given}{function}\npaths_of_original {tmp_path}/sge6\n"
    subprocess.run(["sh"], input=text, text=True, check=True)
    assert list((tmp_path / "sge6").rglob("*")) == [tmp_path / "sge6" / "bin"]
