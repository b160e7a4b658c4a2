"""Experiments, and the real command to search them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler
from optuna.storages._rdb.storage import _VersionManager

from spearmint.controller.controller import Controller
from spearmint.controller.limits import SearchLimits, StudyLimits
from spearmint.controller.study_run import StudyRun
from spearmint.drivers import Driver
from spearmint.fidelity import Fidelity
from spearmint.layout import Layout
from spearmint.model import Experiment, Kind, Language, Variable
from spearmint.store.opening import open_studies
from spearmint.store.records import Records
from spearmint.store.sql.sqlite import sqlite_url
from tests import commands
from tests.spearmint.fakes import Notes, Search

ONE_FLOAT = 'language: PYTHON\nname: "trial"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'


class ExperimentDir:
    """A directory with a config.pb and its wrapper, and the command run on it."""

    def __init__(self, root: Path, code: str, config: str) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.config = root / "config.pb"
        self.config.write_text(config)
        (root / "trial.py").write_text(code)

    def argv(self, *options: str) -> list[str]:
        command = [sys.executable, "-m", "spearmint", "--method=RandomChooser"]
        return [*command, *options, str(self.config)]

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the search to its end."""
        return commands.spearmint(*self.argv(*options)[3:])

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start the search in a new process group."""
        return subprocess.Popen(
            self.argv(*options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of spearmint; the directory comes last."""
        return commands.spearmint(*arguments, self.root)


_STUDY_LIMITS = {"finished", "broken", "patience", "target"}

MakeExperiment = Callable[..., ExperimentDir]


@pytest.fixture(autouse=True, scope="session")
def migrations_read_once() -> Iterator[None]:
    """Execute Optuna's ten migration scripts once, instead of in each opening of a storage."""
    read = _VersionManager._create_alembic_script
    found = []

    def once(self: _VersionManager) -> object:
        if not found:
            found.append(read(self))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_VersionManager, "_create_alembic_script", once)
        yield


@pytest.fixture
def make_experiment(tmp_path: Path) -> MakeExperiment:
    """Return a factory of experiments, in a path with characters that are special in a shell."""

    def make(
        code: str = "def main(job_id, params):\n    return float(params['x'][0])\n",
        config: str = ONE_FLOAT,
        root: Path = tmp_path / 'it\'s a: dir, ünd "more"? 5%41 #1',
    ) -> ExperimentDir:
        return ExperimentDir(root, code, config)

    return make


@pytest.fixture
def make_loop(tmp_path: Path):
    def make(
        driver: Driver,
        *,
        maximize: bool = False,
        timeout: float | None = None,
        regions: tuple[str, ...] = (),
        pruner: BasePruner | None = None,
        fidelity: Fidelity | None = None,
        batch: int = 1,
        max_retries: int = 1,
        **given,
    ) -> Search:
        experiment = Experiment(
            path=tmp_path / "config.pb",
            name="x",
            language=Language.PYTHON,
            variables=(Variable(name="x", kind=Kind.FLOAT, low=0, high=1),),
            maximize=maximize,
            trial_timeout_s=timeout,
            regions=regions,
            fidelity=fidelity,
            batch=batch,
            max_retries=max_retries,
        )
        url, observer = sqlite_url(Layout(tmp_path).database), Notes()
        all_limits = {"finished": 3, "polling_s": 0.05, **given}
        per_study = {k: v for k, v in all_limits.items() if k in _STUDY_LIMITS}
        studies = open_studies(experiment.searches(), url)
        for study in studies:
            study.use(RandomSampler(seed=0), pruner)
        runs = [
            StudyRun(
                experiment=study.experiment,
                layout=(layout := Layout(tmp_path, study.experiment.region)),
                study=study,
                driver=driver,
                limits=StudyLimits(**per_study),
                records=Records(layout, study.experiment, grid_size=100),
                observer=observer,
            )
            for study in studies
        ]
        whole = {k: v for k, v in all_limits.items() if k not in _STUDY_LIMITS}
        return Search(
            Controller(studies=runs, driver=driver, limits=SearchLimits(**whole), observer=observer)
        )

    return make
