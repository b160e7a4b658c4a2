"""A cluster of 200 nodes against the stand-in for EC2, without SSH and setup."""

from __future__ import annotations

from collections import Counter

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.cluster import lifecycle
from starcluster.cluster.cluster import Cluster, all_clusters
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.config import config
from starcluster.errors import ConfigError
from starcluster.launch.origin import Origin
from starcluster.launch.plan import alias_of
from starcluster.node.commands import Answer
from starcluster.setup.run import SetupResult


class SilentShell:
    """A connection that always works."""

    def __init__(self, instance: Instance) -> None:
        self.name = instance.alias

    def connect(self, *, wait_s: float = 0.0) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def run(self, argv: list[str], *, stdin: str = "", timeout_s: float = 0.0) -> Answer:
        """Fail: no file exists."""
        return Answer(status=1, stdout="", stderr="")

    def checked(self, argv: list[str], *, stdin: str = "", timeout_s: float = 0.0) -> str:
        """Print nothing."""
        return ""


@pytest.mark.slow
def test_requests_grow_with_pages_not_with_nodes(
    ec2: Ec2, settings: config.Config, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "shell", lambda self, instance: SilentShell(instance))
    monkeypatch.setattr(
        lifecycle,
        "set_up",
        lambda nodes, *_, **__: SetupResult(ready=tuple(n.alias for n in nodes)),
    )
    monkeypatch.setattr(Ec2, "placement_groups", lambda self, name: [])  # moto has none
    asked = {}
    for size in (2, 200):
        calls.clear()
        overrides = {"cluster_size": str(size)}
        cluster = ClusterLifecycle(ec2, settings, "big")
        template = settings.template("big", overrides)
        launcher = cluster.prepare(
            template, Origin(template="big", overrides=overrides), check=False
        )
        outcome = cluster.create(launcher)
        assert len(outcome.ready) == size
        (found,) = all_clusters(ec2, settings)
        aliases = [instance.alias for instance in found.instances]
        assert aliases == ["master", *(alias_of(number) for number in range(1, size))]
        cluster.terminate()
        assert all_clusters(ec2, settings) == []
        asked[size] = Counter(calls)
    # Two nodes get names for AWS's console; 200 nodes only have the aliases of their launch.
    # One more request notes the end of the launch.
    names = [asked[size].pop("CreateTags", 0) for size in (2, 200)]
    assert names == [3, 1]
    pages = asked[200].pop("DescribeInstances") - asked[2].pop("DescribeInstances")
    assert 0 <= pages <= 20
    asked[200].pop("DescribeSubnets", None), asked[2].pop("DescribeSubnets", None)
    assert asked[200] == asked[2]


def test_an_image_without_cloud_init_could_not_be_verified_and_is_refused(
    ec2: Ec2, settings: config.Config
) -> None:
    template = settings.template("big", {"disable_cloudinit": "true"})
    with pytest.raises(ConfigError, match="disable_cloudinit"):
        ClusterLifecycle(ec2, settings, "big").prepare(template, Origin(template="big"))
