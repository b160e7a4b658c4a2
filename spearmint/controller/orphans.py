"""Orphans: running jobs of earlier controllers of a directory, of any driver."""

from __future__ import annotations

from spearmint.drivers import Driver, DriverSettings, Job, driver_name, make_driver
from spearmint.errors import InputError, next_command
from spearmint.layout import Layout, TrialFolder
from spearmint.store.lock import ExperimentLock
from spearmint.store.owner import Ownership, read_ownership


def find_orphaned_jobs(layout: Layout, known: Ownership) -> tuple[Driver, list[Job]]:
    """Return the driver of earlier runs and its jobs that have not ended."""
    driver = make_driver(known.driver, DriverSettings(directory=layout.root))
    kinds = ("jobs", "batches", "final")
    paths = [path for kind in kinds for path in layout.root.glob(f"{kind}/*/")]
    paths += [path for kind in kinds for path in layout.regions.glob(f"*/{kind}/*/")]
    folders = (TrialFolder(path) for path in paths if path.name.isdecimal())
    found = [driver.adopt(folder) for folder in folders]
    return driver, [job for job in found if job is not None]


def choose_driver(layout: Layout, name: str | None) -> str:
    """Return the driver to use: ``name``, or else that of earlier runs, or else local.

    Raises:
        InputError: The driver does not exist, or jobs of another driver still run.
        AlreadyRunning: A controller with another driver runs the experiment.
    """
    known = read_ownership(layout)
    chosen = driver_name(name or (known.driver if known is not None else "local"))
    if known is not None and known.driver != chosen:
        with ExperimentLock(layout):  # adopt() terminates leftover processes
            driver, jobs = find_orphaned_jobs(layout, known)
        if jobs:
            raise InputError(
                f"{len(jobs)} trials of this search still run with driver {driver.name}",
                "Terminate them first: "
                + next_command(f"--driver={driver.name}", "--cancel", layout.root),
            )
    return chosen
