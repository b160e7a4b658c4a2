"""Drivers by name: built-in, of installed packages, or ``package.module:Class``.

Only the requested driver is imported.
"""

from __future__ import annotations

import inspect

from spearmint.drivers.base import Driver, DriverSettings
from spearmint.errors import InputError, SpearmintError, did_you_mean
from spearmint.plugins import entry_point_classes, is_class_path, load_class

ENTRY_POINTS = "spearmint.drivers"
"""Group of the entry points by which packages add drivers."""

DRIVERS: dict[str, str] = {
    "local": "spearmint.drivers.local:LocalDriver",
    "SGE": "spearmint.drivers.sge.driver:SgeDriver",
    "SLURM": "spearmint.drivers.slurm.driver:SlurmDriver",
    "HTCONDOR": "spearmint.drivers.htcondor.driver:HTCondorDriver",
    "CELERY": "spearmint.drivers.celery.driver:CeleryDriver",
}
"""The built-in drivers: ``package.module:Class`` by name."""


def driver_names() -> list[str]:
    """Return all names that :func:`make_driver` accepts: built-in names, then entry points."""
    return list(dict.fromkeys([*DRIVERS, *entry_point_classes(ENTRY_POINTS)]))


def driver_name(name: str) -> str:
    """Return the exact name of the driver ``name``, which can be in any letter case.

    Args:
        name: One of :func:`driver_names`, or ``package.module:Class``, which is returned unchanged.

    Raises:
        InputError: No driver has this name.
    """
    if is_class_path(name):
        return name
    return _match(name, DRIVERS) or _match(name, entry_point_classes(ENTRY_POINTS)) or _miss(name)


def _match(name: str, names: dict[str, str]) -> str | None:
    return {known.lower(): known for known in names}.get(name.lower())


def _miss(name: str) -> str:
    names = driver_names()
    hint = did_you_mean(name, names)
    choice = "For a custom driver: --driver=package.module:Class"
    raise InputError(
        f"unknown driver {name!r}; available drivers: {', '.join(sorted(names))}",
        f"{hint}\n{choice}" if hint else choice,
    )


def make_driver(name: str, settings: DriverSettings) -> Driver:
    """Create the driver ``name``; with its attribute ``name``, this function can recreate it.

    Raises:
        InputError: No driver has this name, or it cannot be imported or created.
    """
    known = driver_name(name)
    path = DRIVERS.get(known) or entry_point_classes(ENTRY_POINTS).get(known, known)
    driver_class = _driver_class(path)
    try:
        driver = driver_class(settings)
    except SpearmintError:
        raise
    except Exception as error:
        raise InputError(
            f"cannot create driver {known}: {type(error).__name__}: {error}"
        ) from error
    driver.name = known
    return driver


def _driver_class(path: str) -> type[Driver]:
    """Return the class ``package.module:Class``; check that it is a complete driver."""
    found = load_class(path)
    if not inspect.isclass(found) or not issubclass(found, Driver):
        raise InputError(
            f"{path} is not a driver", "Expected a subclass of spearmint.drivers.Driver."
        )
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise InputError(f"{path} does not implement: {', '.join(missing)}")
    return found
