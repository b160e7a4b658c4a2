"""Searches on the cluster of another queue whose trials record where and when they ran."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from tests.on_hosts.searches import CODE, SgeSearch
from tests.testbed.cell import UID
from tests.testbed.queue_cluster import QueueCluster
from tests.waiting import until

# These queues number GPUs on each host.
_GPUS = '",".join(f"GPU-{{socket.gethostname()}}-{{gpu}}" for gpu in {gpus}.split(","))'


class QueueSearch(SgeSearch):
    """An experiment in the shared home whose trials write records of their runs.

    Attributes:
        id_variable: Environment variable of a job with its number.
    """

    id_variable: ClassVar[str]

    def __init__(
        self, cluster: QueueCluster, directory: Path, *, code: str = CODE, **options: object
    ) -> None:
        gpus = 'os.environ["CUDA_VISIBLE_DEVICES"]'
        code = code.replace('os.environ["JOB_ID"]', f'os.environ["{self.id_variable}"]')
        super().__init__(
            cluster, directory, code=code.replace(gpus, _GPUS.replace("{gpus}", gpus)), **options
        )

    def has(self, name: str) -> bool:
        """Return whether a trial has written the file ``name``."""
        return (self._runs / name).exists()

    def has_jobs(self) -> bool:
        """Return whether the queue lists any job."""
        raise NotImplementedError

    def assert_all_free(self, lost: Iterable[str], within_s: float) -> None:
        """Check that the user has no job and no process on any host."""
        until(lambda: not self.has_jobs(), within_s, 0.1)
        for node in self.cell.hosts:
            if node.is_up:
                done = node.run("ps", "-o", "pid=,args=", "-U", str(UID))
                assert not done.stdout.strip(), done.stdout
