"""Drivers: where trials run."""

from __future__ import annotations

from collections.abc import Callable

from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.local import LocalDriver
from spearmint.drivers.sge.driver import SgeDriver
from spearmint.errors import InputError, did_you_mean

DRIVERS: dict[str, Callable[[DriverSettings], Driver]] = {"local": LocalDriver, "SGE": SgeDriver}

__all__ = [
    "DRIVERS",
    "Driver",
    "DriverSettings",
    "Job",
    "JobEnd",
    "JobRequest",
    "JobState",
    "driver_name",
    "make_driver",
]


def driver_name(name: str) -> str:
    """Return the driver called ``name``, in any case, as we spell it.

    Raises:
        InputError: There is none.
    """
    by_lower = {known.lower(): known for known in DRIVERS}
    if name.lower() not in by_lower:
        raise InputError(
            f"no driver {name!r}; there is: {', '.join(sorted(DRIVERS))}",
            did_you_mean(name, DRIVERS),
        )
    return by_lower[name.lower()]


def make_driver(name: str, settings: DriverSettings) -> Driver:
    """Return the driver called ``name``, in any case.

    Raises:
        InputError: There is none.
    """
    return DRIVERS[driver_name(name)](settings)
