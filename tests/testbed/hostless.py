"""The fake EC2 without hosts, on a port of this machine; SSH and set-up are left out."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
from botocore.config import Config

from starcluster.aws import responses
from starcluster.aws.instances import LIVE
from starcluster.aws.model import Instance
from starcluster.cluster import lifecycle, resize
from starcluster.cluster.cluster import Cluster
from starcluster.errors import SshError
from starcluster.node.commands import Answer
from starcluster.node.node import Node
from starcluster.setup.run import SetupResult
from tests.testbed.brokers import free_port
from tests.testbed.cloud import CREDENTIALS, IMAGE, PRICES, REGION, REPOSITORY
from tests.testbed.faults import TRUTH, put

TYPE = min(PRICES)


class SilentShell:
    """A connection that works if its instance runs."""

    def __init__(self, instance: Instance, state: Callable[[str], str]) -> None:
        self.name, self._id, self._state = instance.alias, instance.id, state

    def connect(self, *, wait_s: float = 0.0) -> None:
        """Wait while the instance boots. Raises SshError if it does not run then."""
        while (state := self._state(self._id)) == "pending":
            time.sleep(0.1)
        if state != "running":
            raise SshError(f"cannot connect to {self.name}: no answer from port 22")

    def close(self) -> None:
        """Do nothing."""

    def run(self, argv: list[str], *, stdin: str = "", timeout_s: float = 0.0) -> Answer:
        """Fail, if the instance runs: no file exists."""
        self.connect()
        return Answer(status=1, stdout="", stderr="")

    def checked(self, argv: list[str], *, stdin: str = "", timeout_s: float = 0.0) -> str:
        """Print nothing, if the instance runs."""
        self.connect()
        return ""

    def path_exists(self, path: str) -> bool:
        """Return False."""
        return False


class HostlessCloud:
    """EC2 at ``endpoint``, whose instances run ``boot_s`` after their launch.

    Attributes:
        config: A config file with the cluster template ``small``.
        session: A session with credentials.
    """

    def __init__(self, *, boot_s: float = 0.2) -> None:
        self.boot_s = boot_s
        self.folder = Path(tempfile.mkdtemp(prefix="hostless-"))
        self.config = self.folder / "config"
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.session = boto3.Session(
            aws_access_key_id="x",
            aws_secret_access_key="x",  # noqa: S106 - of no account
        )
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> HostlessCloud:
        (self.folder / "faults").mkdir()
        settings = {"folder": str(self.folder), "net": "127.0.0.1/8", "port": self.port}
        settings |= {"region": REGION, "boot_s": self.boot_s}
        path = self.folder / "settings.json"
        path.write_text(json.dumps(settings))
        argv = ["setpriv", "--pdeathsig", "KILL", sys.executable]
        with (self.folder / "server.log").open("w") as log:
            self._server = subprocess.Popen(
                [*argv, "-m", "tests.testbed.fake_ec2", str(path)],
                cwd=REPOSITORY,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._server.stdout is not None
        if self._server.stdout.readline() != "ready\n":
            raise RuntimeError((self.folder / "server.log").read_text())
        self._write_config()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait(30)
            assert self._server.stdout is not None
            self._server.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_config(self) -> None:
        key = self.folder / "mine.pem"
        key.write_text(self.truth().create_key_pair(KeyName="mine")["KeyMaterial"])
        key.chmod(0o600)
        self.config.write_text(
            f"[key mine]\nkey_location = {key}\n[cluster small]\nkeyname = mine\n"
            f"cluster_size = 3\nnode_instance_type = {TYPE}\nnode_image_id = {IMAGE}\n"
        )
        self.config.chmod(0o600)

    def environment(self) -> dict[str, str]:
        """Return the environment of a user's command."""
        kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
        mine = {"HOME": str(self.folder), "AWS_ENDPOINT_URL": self.endpoint, "LANG": "C.UTF-8"}
        mine |= {"AWS_DEFAULT_REGION": REGION, "PYTHONPATH": str(REPOSITORY)}
        return kept | mine | CREDENTIALS

    @cached_property
    def _truth(self) -> Any:
        return self.session.client(
            "ec2",
            endpoint_url=self.endpoint,
            region_name=REGION,
            config=Config(user_agent_extra=TRUTH),
        )

    def truth(self) -> Any:
        """Return a client that sees everything at once."""
        return self._truth

    def forget_connections(self) -> None:
        """Open new connections from now on, because a parent process uses the old ones."""
        self.__dict__.pop("_truth", None)

    def warm(self) -> None:
        """Let ``session`` read boto3's models, which takes a second, for processes that fork."""
        for service in ("ec2", "ssm", "sts", "pricing", "service-quotas"):
            self.session.client(service, region_name=REGION)

    def rules(self, **rules: Any) -> None:
        """Set the consistency of the following calls; see ``tests.testbed.consistency``."""
        put(self.folder, "consistency", rules)

    def fault(self, action: str, fault: dict[str, str], *, times: int = 1) -> None:
        """Make the next calls of ``action`` fail (``code``), or lose the response (``how``)."""
        for number in range(times):
            put(self.folder, f"{action}-{number:03d}", fault)

    def instances(self, cluster: str) -> list[Instance]:
        """Return the instances of a cluster, the terminated ones too, sorted by alias."""
        filters = [{"Name": "tag:starcluster:cluster", "Values": [cluster]}]
        rows = self.truth().describe_instances(Filters=filters)["Reservations"]
        found = [responses.instance(each) for row in rows for each in row["Instances"]]
        return sorted(found, key=lambda each: each.alias or each.id)

    def live(self, cluster: str) -> list[str]:
        """Return the aliases of the instances of a cluster that exist, sorted."""
        found = self.instances(cluster)
        return [each.alias or each.id for each in found if each.state in LIVE]

    def state(self, id: str) -> str:
        """Return the true state of an instance."""
        found = self.truth().describe_instances(InstanceIds=[id])["Reservations"]
        return str(found[0]["Instances"][0]["State"]["Name"])

    def left(self, cluster: str) -> list[str]:
        """Return all that exists of a cluster: instances, groups and launch templates."""
        ec2 = self.truth()
        groups = ec2.describe_security_groups()["SecurityGroups"]
        templates = ec2.describe_launch_templates()["LaunchTemplates"]
        return [
            *self.live(cluster),
            *(each["GroupName"] for each in groups if each["GroupName"] == f"@sc-{cluster}"),
            *(
                each["LaunchTemplateName"]
                for each in templates
                if each["LaunchTemplateName"] == f"starcluster/{cluster}"
            ),
        ]


@contextlib.contextmanager
def without_hosts(
    set_up_s: Callable[[], float] = lambda: 0.0, state: Callable[[str], str] = lambda id: "running"
) -> Iterator[None]:
    """Leave out SSH and set-up in this process.

    Args:
        set_up_s: Returns the seconds of a set-up.
        state: Returns the true state of an instance.
    """

    def shell(self: Cluster, instance: Instance, user: str = "root") -> SilentShell:
        return SilentShell(instance, state)

    def set_up(nodes: list[Node], *_: Any, **__: Any) -> SetupResult:
        time.sleep(set_up_s())
        return SetupResult(ready=tuple(node.alias for node in nodes))

    with (
        mock.patch.object(Cluster, "shell", shell),
        mock.patch.object(lifecycle, "set_up", set_up),
        mock.patch.object(resize, "add_nodes", set_up),
        mock.patch.object(resize, "remove_nodes"),
    ):
        yield
