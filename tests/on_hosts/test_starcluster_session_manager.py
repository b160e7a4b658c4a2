"""Nodes behind Session Manager: stand-ins for the AWS CLI and its plugin, to a real sshd."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from starcluster.errors import ConnectionLost, HostKeyMismatch
from starcluster.launch.userdata import new_host_key
from starcluster.node import Shell
from starcluster.node.tunnel import Forwarding
from tests.testbed.cloud import CREDENTIALS, IMAGE, REGION, Cloud
from tests.testbed.session_manager import AWS, PLUGIN, SessionManagerCli
from tests.waiting import until

pytestmark = pytest.mark.sge
ROLE, CORE = "starcluster-ssm", "AmazonSSMManagedInstanceCore"
SECRET = "never-on-a-command-line"  # noqa: S105 - of no account

_ANYTHING = """{"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "ssm:*", "Resource": "*"}]}"""


class Account:
    """A cloud, a user whose nodes are reached by Session Manager, and the role of the nodes."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.cli = cloud, SessionManagerCli(cloud.folder)
        self.key, self.config = cloud.home / "mine.pem", cloud.home / "config"
        self.config.write_text(
            f"[key mine]\nkey_location = {self.key}\n[cluster inner]\nkeyname = mine\n"
            f"cluster_size = 1\nnode_instance_type = m5.large\nnode_image_id = {IMAGE}\n"
            f"disable_queue = true\nssh_via = ssm\ninstance_profile = {ROLE}\n"
        )
        self.config.chmod(0o600)

    def types(self, *words: str, status: int = 0) -> str:
        line = shlex.join([sys.executable, "-m", "starcluster", "-c", str(self.config), *words])
        path = f"{self.cli.path}:/usr/bin:/bin:/usr/sbin:/sbin"
        done = self.cloud.run("sh", "-c", line, PATH=path, AWS_SECRET_ACCESS_KEY=SECRET)
        text = done.stdout + done.stderr
        assert done.returncode == status, text
        assert SECRET not in text
        return text

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.cloud.endpoint,
            region_name=REGION,
            aws_access_key_id="x",
            aws_secret_access_key="x",  # noqa: S106 - of no account
        )

    def make_role(self) -> None:
        iam = self.client("iam")
        iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=_ANYTHING)
        iam.create_instance_profile(InstanceProfileName=ROLE)
        iam.add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)

    def allow_the_role(self) -> None:
        iam = self.client("iam")
        arn = iam.create_policy(PolicyName=CORE, Path="/starcluster/", PolicyDocument=_ANYTHING)
        iam.attach_role_policy(RoleName=ROLE, PolicyArn=arn["Policy"]["Arn"])

    def shell(self, id: str, host_key: str) -> Shell:
        argv = [str(self.cli.path / "aws"), "ssm", "start-session", "--target", id]
        argv += ["--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=22"]

        def environment() -> Mapping[str, str]:
            return CREDENTIALS | {"PATH": f"{self.cli.path}:/usr/bin:/bin"}

        way = Forwarding(argv=tuple(argv), through="it", fix="", environment=environment)
        return Shell(
            id, user="root", key=self.key, host_key=host_key, timeout_s=60, name="n", tunnel=way
        )


@pytest.fixture
def account() -> Iterator[Account]:
    with Cloud() as cloud:
        yield Account(cloud)


def test_a_cluster_lives_without_an_open_port(account: Account) -> None:
    cloud, types = account.cloud, account.types
    types("createkey", "mine", "-o", str(account.key))
    cloud.call(account.make_role)
    assert shutil.which("aws", path="/usr/bin:/bin:/usr/sbin:/sbin") is None
    refused = types("start", "-c", "inner", "inner", status=2)
    assert "aws is not installed" in refused
    account.cli.install(AWS)
    refused = types("start", "-c", "inner", "inner", status=2)
    assert f"{PLUGIN} is not installed" in refused
    assert f"attach-role-policy --role-name {ROLE}" in refused
    account.cli.install(PLUGIN)
    cloud.call(account.allow_the_role)
    assert cloud.nodes() == {}

    denied = cloud.folder / "faults" / "denied"
    denied.touch()
    said = types("start", "-c", "inner", "inner", status=1)
    assert "ssm:StartSession" in said
    denied.unlink()
    types("terminate", "-c", "inner")

    types("start", "-c", "inner", "inner")
    types("addnode", "inner")
    master = next(id for id, node in cloud.nodes().items() if "master" in types_of(node))
    assert types("sshmaster", "inner", "cat", "/etc/hostname").strip() == "master"
    (cloud.home / "sent").write_text("all\n")
    types("put", "inner", str(cloud.home / "sent"), "/srv")
    types("get", "inner", "/srv/sent", str(cloud.home / "back"))
    assert (cloud.home / "back").read_text() == "all\n"

    assert not _opened(cloud)
    sessions = account.cli.sessions()
    assert {session["key"] for session in sessions} == {CREDENTIALS["AWS_ACCESS_KEY_ID"]}
    assert SECRET not in str(sessions)
    assert {session["argv"][4] for session in sessions} >= set(cloud.nodes())

    fault = cloud.folder / "faults" / "sessions"
    fault.touch()
    assert "TargetNotConnected" in types("sshmaster", "inner", "true", status=255)
    said = types("put", "inner", str(cloud.home / "sent"), "/srv", status=1)
    assert "TargetNotConnected" in said
    fault.rename(fault.with_name("agents"))
    said = types("sshmaster", "inner", "true", status=1)
    assert f"SSM agent of {master} has not registered" in said
    fault.with_name("agents").unlink()

    _a_session_dies(account, master)
    types("terminate", "-c", "inner")
    assert cloud.nodes() == {}


def types_of(node: Any) -> str:
    return str(node.run("cat", "/etc/hostname").stdout)


def _opened(cloud: Cloud) -> list[dict[str, Any]]:
    """Return the rules for addresses, which are all but those for members of the group."""
    asked = [row["parameters"] for row in cloud.calls("AuthorizeSecurityGroupIngress")]
    assert asked
    return [row for row in asked if "UserIdGroupPairs" not in str(row) and "Groups" not in str(row)]


def _a_session_dies(account: Account, id: str) -> None:
    node = account.cloud.nodes()[id]
    public = node.run("cat", "/etc/ssh/ssh_host_ed25519_key.pub").stdout
    host_key = " ".join(public.split()[:2])

    def kill() -> None:
        until(lambda: node.processes("sleep 303"))
        found = subprocess.run(
            ["pgrep", "-f", f"^{sys.executable} -IS {account.cli.path / PLUGIN}"],
            check=True,
            capture_output=True,
            text=True,
        )
        for pid in found.stdout.split():
            with contextlib.suppress(ProcessLookupError):  # it ended with another one
                os.kill(int(pid), signal.SIGKILL)

    def use() -> None:
        with pytest.raises(HostKeyMismatch):
            account.shell(id, new_host_key().public).execute("touch /tmp/sent")
        shell = account.shell(id, host_key)
        shell.execute("true")
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(ConnectionLost):
            shell.execute("sleep 303")
        killer.join()
        assert shell.execute("echo again") == ["again"]
        shell.close()

    account.cloud.call(use)
    assert not Path(node.inside("/tmp/sent")).exists()
