"""Measure starcluster with many nodes: requests, seconds and memory.

``python -m benchmarks.starcluster_many 2 20 200`` starts, lists and terminates clusters of these
sizes on moto's server in another process. SSH and set-up are not included.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from starcluster.aws import Ec2, Instance, client
from starcluster.cluster import Cluster, ClusterLifecycle, all_clusters, lifecycle
from starcluster.config import config
from starcluster.errors import StarClusterError
from starcluster.launch import Origin
from starcluster.setup import SetupResult
from tests.starcluster.conftest import IMAGE
from tests.starcluster.launch.test_many_nodes import SilentShell

_PORT = 5999


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("sizes", type=int, nargs="*", default=[2, 20, 200], help="Nodes. Default: 2 20 200.")
    add("--memory", action="store_true", help="Trace memory, which makes the run slower.")
    given = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.testbed.moto_server", "-p", str(_PORT)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"MOTO_EC2_LOAD_DEFAULT_AMIS": "true"},
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            ec2, settings = _opened(Path(folder))
            for size in given.sizes:
                _report(ec2, settings, size, given.memory)
    finally:
        server.kill()
        server.wait()


def _opened(folder: Path) -> tuple[Ec2, config.Config]:
    path = folder / "config"
    path.write_text(
        f"[aws info]\naws_access_key_id = x\naws_secret_access_key = x\n"
        f"aws_endpoint_url = http://127.0.0.1:{_PORT}\n"
        f"[key big]\nkey_location = {folder / 'key'}\n[cluster big]\nkeyname = big\n"
        f"cluster_size = 2\nnode_instance_type = t3.micro\nnode_image_id = {IMAGE}\n"
        "root_volume_size = 40\n"
    )
    path.chmod(0o600)
    settings = config.load(path, {})
    ec2 = Ec2(settings.aws(), "us-east-1")
    for _ in range(100):
        try:
            _, key = ec2.create_key_pair("big")
            break
        except StarClusterError:
            time.sleep(0.2)
    (folder / "key").write_text(key)
    (folder / "key").chmod(0o600)
    return ec2, settings


def _report(ec2: Ec2, settings: config.Config, size: int, memory: bool) -> None:
    calls: Counter[str] = Counter()
    original = client.AwsClient._do

    def do(self: Any, client: Any, operation: str, call: Any) -> Any:
        calls[operation] += 1
        return original(self, client, operation, call)

    def shell(self: Cluster, instance: Instance) -> SilentShell:
        return SilentShell(instance)

    def set_up(nodes: Any, *_: Any, **__: Any) -> SetupResult:
        return SetupResult(ready=tuple(each.alias for each in nodes))

    with (
        mock.patch.object(client.AwsClient, "_do", do),
        mock.patch.object(Cluster, "shell", shell),
        mock.patch.object(lifecycle, "set_up", set_up),
        mock.patch.object(Ec2, "placement_groups", return_value=[]),  # moto has none
    ):
        if memory:
            tracemalloc.start()
        overrides = {"cluster_size": str(size)}
        cluster = ClusterLifecycle(ec2, settings, "big")
        began = time.monotonic()
        template = settings.template("big", overrides)
        origin = Origin(template="big", overrides=overrides)
        launcher = cluster.prepare(template, origin, check=False)
        cluster.create(launcher)
        started = time.monotonic()
        (found,) = all_clusters(ec2, settings)
        assert len(found.instances) == size  # noqa: S101
        listed = time.monotonic()
        cluster.terminate()
        ended = time.monotonic()
    row = f"{size:4} nodes: {calls.total()} requests; start {started - began:.1f} s, "
    row += f"list {listed - started:.1f} s, terminate {ended - listed:.1f} s"
    if memory:
        row += f"; peak {tracemalloc.get_traced_memory()[1] / 2**20:.1f} MiB (traced)"
        tracemalloc.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{row}; process {peak:.0f} MiB; {dict(calls.most_common(4))}")


if __name__ == "__main__":
    main()
