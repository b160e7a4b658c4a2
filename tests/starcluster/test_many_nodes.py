"""A cluster of 200 nodes against EC2's stand-in, SSH and set-up left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from starcluster import config, ec2_door, life
from starcluster.cluster import Cluster, all_clusters
from starcluster.ec2 import Ec2
from starcluster.errors import ConfigError
from starcluster.life import Life
from starcluster.model import Instance
from starcluster.plan import Origin, alias_of
from starcluster.setup import SetupResult

IMAGE = "ami-12c6146b"


class SilentShell:
    """A connection that always stands."""

    def __init__(self, instance: Instance) -> None:
        self.name = instance.alias

    def connect(self, *, wait_s: float = 0.0) -> None:
        """Be there."""

    def close(self) -> None:
        """Be gone."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each request was sent."""
    counted: Counter[str] = Counter()
    original = ec2_door.Door._do

    def do(self: Any, client: Any, operation: str, call: Any) -> Any:
        counted[operation] += 1
        return original(self, client, operation, call)

    monkeypatch.setattr(ec2_door.Door, "_do", do)
    return counted


@pytest.fixture
def settings(tmp_path: Path, ec2: Ec2) -> config.Config:
    """A config with the cluster template ``big``."""
    ec2.delete_key_pair("big")
    _, key = ec2.create_key_pair("big")
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    path = tmp_path / "config"
    path.write_text(
        f"[key big]\nkey_location = {tmp_path / 'key'}\n[cluster big]\nkeyname = big\n"
        f"cluster_size = 2\nnode_instance_type = t3.micro\nnode_image_id = {IMAGE}\n"
        "root_volume_size = 40\n"
    )
    path.chmod(0o600)
    return config.load(path, {})


@pytest.mark.slow
def test_requests_grow_with_pages_not_with_nodes(
    ec2: Ec2, settings: config.Config, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "shell", lambda self, instance: SilentShell(instance))
    monkeypatch.setattr(
        life, "set_up", lambda nodes, *_, **__: SetupResult(ready=tuple(n.alias for n in nodes))
    )
    monkeypatch.setattr(Ec2, "placement_groups", lambda self, name: [])  # moto has none
    asked = {}
    for size in (2, 200):
        calls.clear()
        overrides = {"cluster_size": str(size)}
        one = Life(ec2, settings, "big")
        template = settings.template("big", overrides)
        launcher = one.prepare(template, Origin(template="big", overrides=overrides), check=False)
        outcome = one.create(launcher)
        assert len(outcome.ready) == size
        (found,) = all_clusters(ec2, settings)
        aliases = [each.alias for each in found.instances]
        assert aliases == ["master", *(alias_of(number) for number in range(1, size))]
        one.terminate()
        assert all_clusters(ec2, settings) == []
        asked[size] = Counter(calls)
    # Two get names for AWS's console; two hundred know theirs from their launch.
    names = [asked[size].pop("CreateTags", 0) for size in (2, 200)]
    assert names == [2, 0]
    pages = asked[200].pop("DescribeInstances") - asked[2].pop("DescribeInstances")
    assert 0 <= pages <= 20
    asked[200].pop("DescribeSubnets", None), asked[2].pop("DescribeSubnets", None)
    assert asked[200] == asked[2]


def test_an_image_without_cloud_init_could_not_be_verified_and_is_refused(
    ec2: Ec2, settings: config.Config
) -> None:
    template = settings.template("big", {"disable_cloudinit": "true"})
    with pytest.raises(ConfigError, match="disable_cloudinit"):
        Life(ec2, settings, "big").prepare(template, Origin(template="big"))
