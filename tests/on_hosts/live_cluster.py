"""A cloud on the test bed with a cluster that tests start and terminate."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from unittest import mock

from starcluster.aws import Ec2
from starcluster.cluster import ClusterLifecycle, Outcome
from starcluster.config import config
from starcluster.launch import Origin, Timeouts
from tests.testbed.cloud import IMAGE, REGION, Cloud
from tests.testbed.fabric import Node
from tests.testbed.faults import TRUTH

NAME = "faulty"
TYPE = "g4dn.xlarge"


class Bench:
    """A cloud with the config of one cluster.

    Attributes:
        ec2: As commands have it: AWS can answer late.
        truth: Sees everything at once.
    """

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        key = cloud.home / "mine.pem"
        path = cloud.home / "config"
        path.write_text(
            f"[key mine]\nkey_location = {key}\n[cluster small]\nkeyname = mine\n"
            f"cluster_size = 3\nnode_instance_type = {TYPE}\nnode_image_id = {IMAGE}\n"
            "[cluster tested]\nextends = small\nplugins = gpus\n"
            "[plugin gpus]\nsetup_class = starcluster_plugins.gpu_sge.GpuSge\nselftest_s = 1\n"
        )
        path.chmod(0o600)
        self.config = config.load(path, cloud.environment())
        os.environ.update(cloud.environment())
        self.ec2 = Ec2(self.config.aws(), REGION)
        _, text = self.ec2.create_key_pair("mine")
        key.write_text(text)
        key.chmod(0o600)
        # The fake EC2 recognises this client.
        with mock.patch.dict(os.environ, {"AWS_SDK_UA_APP_ID": TRUTH}):
            self.truth = Ec2(self.config.aws(), REGION)
            self.truth.key_pairs()

    def lifecycle(
        self,
        progress: Callable[[str, str], None] = lambda alias, what: None,
        bad: str = "leave",
        *,
        ssh_s: float = 120,
    ) -> ClusterLifecycle:
        return ClusterLifecycle(
            self.ec2,
            self.config,
            NAME,
            progress=progress,
            timeouts=Timeouts(running_s=300, ssh_s=ssh_s),
            on_bad_node=bad,
        )

    def start(self, lifecycle: ClusterLifecycle, **overrides: str) -> Outcome:
        template = self.config.template("small", overrides)
        return lifecycle.create(
            lifecycle.prepare(template, Origin(template="small", overrides=overrides))
        )

    def types(self, *words: str, status: int = 0) -> str:
        """Run a starcluster command; return its output and standard error."""
        argv = [sys.executable, "-m", "starcluster", "-c", str(self.cloud.home / "config")]
        done = self.cloud.run(*argv, *words, timeout_s=600)
        assert done.returncode == status, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def node(self, alias: str) -> Node:
        """Return the host of a node."""
        (found,) = (
            instance for instance in self.truth.instances(cluster=NAME) if instance.alias == alias
        )
        return self.cloud.nodes()[found.id]

    def clear(self) -> None:
        """Terminate what a failed test left, and remove its faults."""
        for fault in (self.cloud.folder / "faults").iterdir():
            fault.unlink(missing_ok=True)
        if not self.nothing_left():
            self.lifecycle().terminate()

    def lists_are_empty(self) -> bool:
        """Return whether AWS lists no node, also after its lag: it can list some now and then."""
        return not any(self.ec2.instances(cluster=NAME) for _ in range(12))

    def nothing_left(self) -> bool:
        return not (
            self.truth.instances(cluster=NAME)
            or self.truth.security_groups(f"@sc-{NAME}")
            or self.truth.placement_groups()
            or list(self.truth.pages("ec2", "DescribeLaunchTemplates", "LaunchTemplates"))
            or self.cloud.nodes()
        )


def queues(bench: Bench) -> dict[str, str]:
    """Return the state of each queue instance by host; empty if it accepts jobs."""
    rows = [line.split() for line in bench.types("sshmaster", NAME, "qstat -f").splitlines()]
    found = {row[0].partition("@")[2]: row[5:] for row in rows if row[:1] and "all.q@" in row[0]}
    return {host: "".join(state) for host, state in found.items()}
