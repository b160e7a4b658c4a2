"""Run trials as jobs: the contract of a driver, and the classes for a queue's driver."""

from typing import TYPE_CHECKING

from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.registry import DRIVERS, driver_name, driver_names, make_driver
from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.drivers.queue import (
        Dialect,
        EndedRun,
        FailedStart,
        Obstacle,
        Queue,
        QueueHost,
        QueueJob,
        QueueJobState,
        SubmitSpec,
    )
    from spearmint.drivers.queue_driver import QueueDriver

__all__ = [
    "DRIVERS",
    "Dialect",
    "Driver",
    "DriverSettings",
    "EndedRun",
    "FailedStart",
    "Job",
    "JobEnd",
    "JobRequest",
    "JobState",
    "Obstacle",
    "Queue",
    "QueueDriver",
    "QueueHost",
    "QueueJob",
    "QueueJobState",
    "SubmitSpec",
    "driver_name",
    "driver_names",
    "make_driver",
]

_QUEUE = (
    "Dialect",
    "EndedRun",
    "FailedStart",
    "Obstacle",
    "Queue",
    "QueueHost",
    "QueueJob",
    "QueueJobState",
    "SubmitSpec",
)

# Loaded on first use: a search on this machine does not need a queue.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(_QUEUE, "spearmint.drivers.queue"),
        "QueueDriver": "spearmint.drivers.queue_driver",
    },
)
