"""Import of another study, and wrong sources."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spearmint.store.sql.sqlite import sqlite_url
from tests.spearmint.conftest import ExperimentDir, MakeExperiment
from tests.spearmint.importing.conftest import CODE, CONFIG, Import, counts, exported, search


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    """Return the URL of a storage with two studies that spearmint did not create."""
    url = sqlite_url(tmp_path / "foreign.db")
    space = {
        "X[0]": FloatDistribution(-5, 5),
        "X[1]": FloatDistribution(-5, 5),
        "n": IntDistribution(0, 100),
        "act": CategoricalDistribution(["tanh", "relu", "elu"]),
        "lr": FloatDistribution(0, 1),
    }
    for name in ("mine", "other"):
        study = optuna.create_study(study_name=name, storage=url)
        study.enqueue_trial({"X[0]": 0.25, "X[1]": 0.5, "n": 4, "act": "relu", "lr": 0.5})
        study.tell(study.ask(space), 0.75)
        study.tell(study.ask(space), state=optuna.trial.TrialState.FAIL)
        study.ask(space)
    return url


def test_a_study_of_any_optuna_storage(
    refused: Import, imported: Import, experiment: ExperimentDir, foreign: str
) -> None:
    error = refused(experiment, foreign)
    assert "mine, other" in error
    assert "--study" in error
    error = refused(experiment, foreign, "--study=mien")
    assert "'mien'" in error
    assert "'mine'?" in error
    output = imported(experiment, foreign, "--study=mine")
    assert counts(output) == ["1 trials", "2 rows"]
    assert all(fact in output for fact in ("study mine", "'trial'", ": lr"))
    [trial] = exported(experiment)
    assert trial["params"] == {"X": [0.25, 0.5], "n": [4], "act": ["relu"]}


def test_a_url_is_not_printed_since_it_may_hold_a_password(
    refused: Import, experiment: ExperimentDir, foreign: str
) -> None:
    wrong = experiment.config.read_text().replace("min: 0 max: 1", "min: 0.3 max: 1")
    experiment.config.write_text(wrong)
    for option in ("--study=mine", "--value-column=x"):
        assert foreign not in refused(experiment, foreign, option)


def test_the_directory_of_another_search(
    refused: Import,
    imported: Import,
    experiment: ExperimentDir,
    make_experiment: MakeExperiment,
    tmp_path: Path,
) -> None:
    source = make_experiment(CODE, CONFIG, tmp_path / "source")
    url = sqlite_url(tmp_path / "elsewhere.db")
    search(source, 1.0, 2.0, 3.0, storage=url)
    output = imported(experiment, source.root)
    assert counts(output) == ["3 trials"]
    assert "study trial" in output
    taken = exported(experiment)
    assert [(row["value"], row["seconds"]) for row in taken] == [
        (row["value"], row["seconds"]) for row in exported(source)
    ]
    maximizing = make_experiment(CODE, CONFIG + "direction: MAXIMIZE", tmp_path / "maximizing")
    error = refused(maximizing, source.root)
    assert "'trial'" in error
    assert "minimize" in error
    assert "maximize" in error.replace(str(maximizing.root), "")


def test_import_leaves_the_driver_of_the_search(
    imported: Import, experiment: ExperimentDir, rows: Path
) -> None:
    search(experiment, 1.0)
    known = experiment.root / ".spearmint" / "experiment.json"
    known.write_text(known.read_text().replace('"local"', '"SGE"'))
    imported(experiment, rows)
    assert json.loads(known.read_text())["driver"] == "SGE"


@pytest.mark.parametrize(
    ("source", "option", "facts"),
    [
        ("absent.csv", "--skip-bad", ["absent.csv"]),
        ("sqlite:////absent/x.db", "--skip-bad", [" /absent/x.db"]),
        ("nonsense://x", "--skip-bad", ["sqlite:////path/to/file.db"]),
        (".", "--value-column=x", ["--value-column", "CSV"]),
        ("CSV", "--study=x", ["--study", "earlier results.csv"]),
        ("DIR", "--skip-bad", ["/empty", "jobs/*.pb"]),
        ("DATABASE", "--skip-bad", ["some.db", "sqlite:///"]),
    ],
)
def test_other_sources_are_refused(
    refused: Import,
    experiment: ExperimentDir,
    rows: Path,
    tmp_path: Path,
    source: str,
    option: str,
    facts: list[str],
) -> None:
    optuna.create_study(storage=sqlite_url(tmp_path / "some.db"))
    (tmp_path / "empty").mkdir()
    names = {"CSV": rows, "DIR": tmp_path / "empty", "DATABASE": tmp_path / "some.db"}
    error = refused(experiment, names.get(source, source), option)
    assert all(fact in error for fact in facts)
