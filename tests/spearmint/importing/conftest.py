"""A search to import into, and ``spearmint import`` run on it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import optuna
import pytest

from spearmint import Search
from spearmint.cli.main import main
from spearmint.store.session import read_sessions
from spearmint.store.sql.sqlite import sqlite_url
from tests.spearmint.conftest import ExperimentDir, MakeExperiment

Import = Callable[..., str]
CONFIG = """
language: PYTHON name: "trial"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }
variable { name: "n" type: INT min: 1 max: 9 }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""
CODE = "def main(job_id, params):\n    return float(params['X'][0])\n"
ROWS = "X[0],X[1],n,act,value,seconds,note\n0.1,0.2,3,relu,1.5,2.25,a\n0.3,0.4,5,tanh,0.5,,b\n"


@pytest.fixture
def experiment(make_experiment: MakeExperiment) -> ExperimentDir:
    return make_experiment(CODE, CONFIG)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "earlier results.csv"
    path.write_text(ROWS)
    return path


@dataclass(frozen=True)
class Importer:
    """Runs ``spearmint import`` in this process; returns the exit code and the output."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def run(self, experiment: ExperimentDir, source: Path | str, *options: str) -> tuple[int, str]:
        argv = ["spearmint", "import", *options, str(experiment.config), str(source)]
        self.monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as caught:
            main()
        output = self.capsys.readouterr()
        return int(caught.value.code or 0), output.err or output.out


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Import:
    """Import successfully, and return the output."""
    importer = Importer(monkeypatch, capsys)

    def run(experiment: ExperimentDir, source: Path | str, *options: str) -> str:
        code, output = importer.run(experiment, source, *options)
        assert code == 0, output
        return output

    return run


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Import:
    """Import a wrong source, and return the error message."""
    importer = Importer(monkeypatch, capsys)

    def run(experiment: ExperimentDir, source: Path | str, *options: str) -> str:
        code, output = importer.run(experiment, source, *options)
        assert code == 2, output
        return output

    return run


def search(experiment: ExperimentDir, *values: float | None, storage: str | None = None) -> None:
    """Run trials that return ``values``; None fails."""
    with Search(experiment.config, method="RandomChooser", storage=storage) as controller:
        for value in values:
            controller.tell(controller.ask(), value)


def counts(output: str) -> list[str]:
    """Return the numbers of trials and rows in ``output``, such as ``2 trials``, in order."""
    found = re.findall(r"(\d+) (?:\w+ )?(trial|row)s?\b", output)
    return [f"{number} {noun}s" for number, noun in found]


def exported(experiment: ExperimentDir) -> list[dict[str, object]]:
    sessions = read_sessions(experiment.config, None)
    return [trial.to_json() for session in sessions for trial in session.study.trials()]


def optuna_study(experiment: ExperimentDir) -> optuna.Study:
    return optuna.load_study(
        study_name="trial", storage=sqlite_url(experiment.root / "spearmint.db")
    )
