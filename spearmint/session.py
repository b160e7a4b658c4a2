"""An experiment opened for reading or running: config, directory and study together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spearmint.config import load_experiment
from spearmint.errors import NoSearch
from spearmint.layout import Layout
from spearmint.lock import ExperimentLock
from spearmint.model import Experiment
from spearmint.ownership import storage_url, take_ownership
from spearmint.sqlite import file_of
from spearmint.study import Study, has_study, open_study


@dataclass(frozen=True, slots=True)
class Session:
    """What every command works on."""

    experiment: Experiment
    layout: Layout
    study: Study


@contextmanager
def run_session(config: Path, storage: str | None, *, driver: str = "local") -> Iterator[Session]:
    """Hold the experiment alone, to run it; its study is created when there is none.

    Raises:
        AlreadyRunning: Another controller holds it.
        InputError, StorageError: See there.
    """
    experiment = load_experiment(config)
    layout = Layout(experiment.directory)
    url = storage_url(layout, storage)
    with ExperimentLock(layout):
        study = open_study(experiment, url)
        take_ownership(layout, study, driver=driver)
        study.abandon_unproposed()
        study.enqueue_seed_points()
        yield Session(experiment, layout, study)


def read_session(config: Path, storage: str | None) -> Session:
    """Open an experiment to look at it; a controller may run meanwhile.

    Raises:
        NoSearch: It was never run.
    """
    experiment = load_experiment(config)
    layout = Layout(experiment.directory)
    url = storage_url(layout, storage)
    file = file_of(url)
    if (file is not None and not file.exists()) or not has_study(experiment.name, url):
        raise NoSearch(
            f"no search of {experiment.name!r} in {layout.root} yet",
            f"Start it: spearmint {experiment.path}",
        )
    return Session(experiment, layout, open_study(experiment, url))
