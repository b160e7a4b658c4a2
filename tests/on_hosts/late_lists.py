"""A cluster behind a fake EC2 whose lists show changes late, by other delays in each test."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from starcluster.errors import StarClusterError
from tests.on_hosts.live_cluster import NAME, Bench
from tests.testbed.cloud import Cloud
from tests.waiting import until

LAG_S = 1.5
"""Longest lag of the lists."""


@contextmanager
def late_bench() -> Iterator[Bench]:
    """Serve the cloud, and restore the environment afterwards."""
    before = dict(os.environ)
    with Cloud() as cloud:
        yield cloud.call(Bench, cloud)
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def cleared_after(bench: Bench, name: str) -> Iterator[None]:
    """Let AWS list changes late, by delays that follow from ``name``; then clear the cluster."""
    seed = zlib.crc32(name.encode())
    bench.cloud.rules(seed=seed, lag_s=[0.0, LAG_S], flicker=0.3, slow_s={"RunInstances": [0, 0.5]})
    until(lambda: bench.cloud.call(bench.lists_are_empty), 30, 0.1)  # of the test before
    yield
    bench.cloud.call(bench.clear)


def assert_reports_nothing(error: StarClusterError) -> None:
    """The fix must not name a command for the cluster, because nothing of it exists."""
    assert error.fix
    assert NAME not in error.fix
