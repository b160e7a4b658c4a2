"""The queues, on one host of the test bed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from tests.testbed.celery_hosts import CeleryHosts
from tests.testbed.condor import CondorPool
from tests.testbed.queue_cluster import QueueCluster
from tests.testbed.slurm import SlurmCluster

Bed = Callable[[int], contextlib.AbstractContextManager[QueueCluster]]


@contextlib.contextmanager
def slurm(slots: int) -> Iterator[QueueCluster]:
    """Yield a Slurm cluster with this number of slots."""
    with SlurmCluster(1, slots=slots) as cluster:
        yield cluster


@contextlib.contextmanager
def condor(slots: int) -> Iterator[QueueCluster]:
    """Yield an HTCondor pool with this number of slots."""
    with CondorPool(1, slots=slots) as pool:
        yield pool


@contextlib.contextmanager
def celery(slots: int) -> Iterator[QueueCluster]:
    """Yield a host with a broker and ``spearmint worker`` with this number of slots."""
    with CeleryHosts(1, slots=slots) as hosts:
        hosts.start_workers()
        yield hosts
        hosts.stop_workers()


BEDS: dict[str, Bed] = {"SLURM": slurm, "HTCONDOR": condor, "CELERY": celery}
