"""Drivers: where trials run. Exports the contract of a driver, and what a queue's driver needs."""

from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.queue import (
    Dialect,
    EndedRun,
    Queue,
    QueueHost,
    QueueJob,
    QueueJobState,
    SubmitSpec,
)
from spearmint.drivers.queue_driver import QueueDriver
from spearmint.drivers.registry import DRIVERS, driver_name, make_driver

__all__ = [
    "DRIVERS",
    "Dialect",
    "Driver",
    "DriverSettings",
    "EndedRun",
    "Job",
    "JobEnd",
    "JobRequest",
    "JobState",
    "Queue",
    "QueueDriver",
    "QueueHost",
    "QueueJob",
    "QueueJobState",
    "SubmitSpec",
    "driver_name",
    "make_driver",
]
