"""Jobs that earlier controllers of a directory left, whoever ran them."""

from __future__ import annotations

from spearmint.drivers import Driver, DriverSettings, Job, driver_name, make_driver
from spearmint.errors import InputError, next_command
from spearmint.layout import Layout, TrialFolder
from spearmint.store.lock import ExperimentLock
from spearmint.store.owner import Ownership, read_ownership


def find_orphaned_jobs(layout: Layout, known: Ownership) -> tuple[Driver, list[Job]]:
    """Return the driver of the earlier runs, and those of its jobs that are not over."""
    driver = make_driver(known.driver, DriverSettings(directory=layout.root))
    folders = (
        TrialFolder(path) for path in (*layout.jobs.glob("*/"), *layout.regions.glob("*/jobs/*/"))
    )
    found = [driver.adopt(folder) for folder in folders]
    return driver, [job for job in found if job is not None]


def choose_driver(layout: Layout, name: str | None) -> str:
    """Return the driver to use: the named one, else that of the earlier runs, else local.

    Raises:
        InputError: There is none of this name, or jobs of another one are still alive.
        AlreadyRunning: A controller that uses another one holds the experiment.
    """
    known = read_ownership(layout)
    chosen = driver_name(name or (known.driver if known is not None else "local"))
    if known is not None and known.driver != chosen:
        with ExperimentLock(layout):  # adopting jobs ends the processes of dead ones
            driver, jobs = find_orphaned_jobs(layout, known)
        if jobs:
            raise InputError(
                f"{len(jobs)} trials of this search still run by driver {driver.name}",
                "End them first: "
                + next_command(f"--driver={driver.name}", "--cancel", layout.root),
            )
    return chosen
