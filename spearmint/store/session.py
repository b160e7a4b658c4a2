"""Open an experiment for reading or running: config, directory and studies together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spearmint.config.reader import load_experiment
from spearmint.config.regions import pick_region
from spearmint.errors import InputError, NoSearch, next_command
from spearmint.layout import Layout
from spearmint.model import Experiment
from spearmint.store.lock import ExperimentLock
from spearmint.store.opening import open_studies, read_studies, study_names
from spearmint.store.owner import check_directory, read_ownership, storage_url, take_ownership
from spearmint.store.sql.sqlite import file_of
from spearmint.store.study import Study


@dataclass(frozen=True, slots=True)
class Session:
    """The search of an experiment, or of one of its regions."""

    experiment: Experiment
    layout: Layout
    study: Study


def in_region(experiment: Experiment, region: str | None) -> Experiment:
    """Return ``experiment`` with only ``region``, of config.pb or of an earlier run.

    Raises:
        InputError: The region does not exist, or the experiment has regions and ``region`` is None.
    """
    experiment = known_regions(experiment)
    if region is None and not experiment.regions:
        return experiment
    if region is None:
        raise InputError(
            f"no region given for {experiment.path}",
            f"Name one of: {', '.join(experiment.regions)}.",
        )
    chosen = pick_region(experiment.regions, region)
    return dataclasses.replace(experiment, regions=(chosen,), region=chosen)


def known_regions(experiment: Experiment) -> Experiment:
    """Return ``experiment`` with the regions of earlier runs (``--regions FILE``) and config.pb.

    A search that was started without regions has none.
    """
    known = read_ownership(Layout(experiment.directory))
    if known is None:
        return experiment
    regions = dict.fromkeys((*known.regions, *experiment.regions)) if known.regions else ()
    return dataclasses.replace(experiment, regions=tuple(regions))


@contextmanager
def run_sessions(
    experiment: Experiment, storage: str | None, *, driver: str = "local"
) -> Iterator[list[Session]]:
    """Lock the experiment to run it, and yield one session per region.

    Studies are created if they do not exist.

    Raises:
        AlreadyRunning: Another controller runs the experiment.
        InputError, StorageError: The directory or the storage cannot be used.
    """
    with ExperimentLock(Layout(experiment.directory)):
        yield open_sessions(experiment, storage, driver=driver)


def open_sessions(
    experiment: Experiment, storage: str | None, *, driver: str = "local"
) -> list[Session]:
    """Open the experiment as :func:`run_sessions` does; the caller holds its lock."""
    layout = Layout(experiment.directory)
    url = storage_url(layout, storage)
    check_directory(layout, experiment)
    studies = open_studies(experiment.searches(), url)
    take_ownership(layout, studies, driver=driver)
    for study in studies:
        study.abandon_unproposed()
        study.enqueue_seed_points()
    return [_session(layout, study) for study in studies]


def read_sessions(config: Path, storage: str | None, region: str | None = None) -> list[Session]:
    """Open an experiment for reading, while a controller can run it.

    Args:
        config: A config.pb or its directory.
        storage: URL of the storage; None for that of earlier runs.
        region: Read only this region; None for all regions of earlier runs.

    Raises:
        NoSearch: The experiment was never run.
        InputError: The region does not exist.
    """
    experiment = load_experiment(config)
    layout = Layout(experiment.directory)
    experiment = known_regions(experiment)
    if region is not None:
        region = pick_region(experiment.regions, region)
        experiment = dataclasses.replace(experiment, regions=(region,))
    url = storage_url(layout, storage)
    file = file_of(url)
    names = set(study_names(url)) if file is None or file.exists() else set()
    begun = [search for search in experiment.searches() if search.study_name in names]
    if not begun:
        raise NoSearch(
            f"no search of {experiment.name!r} in {layout.root} yet",
            f"Start it: {next_command(experiment.path)}",
        )
    return [_session(layout, study) for study in read_studies(begun, url)]


def _session(layout: Layout, study: Study) -> Session:
    region = study.experiment.region
    return Session(study.experiment, dataclasses.replace(layout, region=region), study)
