"""Drivers: where trials run."""

from __future__ import annotations

from collections.abc import Callable

from spearmint.drivers.base import Driver, Job, JobRequest, JobState
from spearmint.drivers.local import LocalDriver
from spearmint.errors import InputError, did_you_mean

DRIVERS: dict[str, Callable[..., Driver]] = {"local": LocalDriver}

__all__ = ["DRIVERS", "Driver", "Job", "JobRequest", "JobState", "make_driver"]


def make_driver(name: str, *, max_concurrent: int) -> Driver:
    """Return the driver called ``name``, in any case.

    Raises:
        InputError: There is none.
    """
    by_lower = {known.lower(): known for known in DRIVERS}
    if name.lower() not in by_lower:
        raise InputError(
            f"no driver {name!r}; there is: {', '.join(sorted(DRIVERS))}",
            did_you_mean(name, DRIVERS),
        )
    return DRIVERS[by_lower[name.lower()]](max_concurrent=max_concurrent)
