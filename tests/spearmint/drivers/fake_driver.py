"""Drivers for the fake queue: one with immediate job ids, and one with late job ids."""

from __future__ import annotations

from spearmint.drivers import Dialect, DriverSettings, QueueDriver
from spearmint.drivers.testing import FakeQueue
from spearmint.drivers.testing.fake_queue import JOB_ID_VARIABLE

LATE_S = 0.5


class FakeQueueDriver(QueueDriver):
    name = "fake"
    queue_type = FakeQueue
    dialect = Dialect(
        queue="The fake queue",
        job_id_variable=JOB_ID_VARIABLE,
        rerun_exit_code=75,
        release="free {id}",
        resume="free {id}",
        retry="free {id}",
        cancel="cancel {id}",
        forget="forget {id}",
    )


def late_queue(settings: DriverSettings) -> FakeQueue:
    queue = FakeQueue(settings)
    queue.late_s = LATE_S
    return queue


class LateDriver(FakeQueueDriver):
    queue_type = staticmethod(late_queue)
    dialect = Dialect(queue="A late queue", listed_after_s=2 * LATE_S)
