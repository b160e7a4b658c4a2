"""Import into and from searches whose trials pause at rungs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution

from spearmint.store.sql.sqlite import sqlite_url
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment
from tests.spearmint.importing.conftest import Import, exported

RUNGS = ONE_FLOAT + 'fidelity { name: "epochs" min: 1 max: 9 reduction_factor: 3 }\n'
CODE = """
from spearmint import report, steps

def main(job_id, params):
    for epoch in steps(9):
        with open("epochs.txt", "a") as file:
            file.write(f"{job_id}.{epoch} ")
        report(epoch, params["x"][0] + 1 / epoch)
    return params["x"][0] + 1 / epoch
"""


@pytest.fixture
def target(make_experiment: MakeExperiment, tmp_path: Path) -> ExperimentDir:
    return make_experiment(CODE, RUNGS, tmp_path / "target")


def facts(experiment: ExperimentDir) -> list[tuple[object, ...]]:
    """Return state, values at rungs and value of all trials, sorted."""
    rows = exported(experiment)
    return sorted(((r["state"], r.get("rungs"), r["value"], r["params"]) for r in rows), key=str)


def study_with_curves(url: str, *curves: tuple[Sequence[float], float | None]) -> None:
    """Store trials with reports at steps 1, 2, ...; those without a value are pruned."""
    study = optuna.create_study(study_name="any", storage=url)
    for number, (reports, value) in enumerate(curves):
        study.enqueue_trial({"x": number / 16})
        trial = study.ask({"x": FloatDistribution(0, 1)})
        for step, reported in enumerate(reports, 1):
            trial.report(reported, step)
        state = optuna.trial.TrialState.PRUNED if value is None else None
        study.tell(trial, value, state=state)


def test_a_search_with_rungs_keeps_them(
    target: ExperimentDir, imported: Import, make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    config = ONE_FLOAT + "fidelity { max: 4 reduction_factor: 2 }\n"
    source = make_experiment(CODE, config, tmp_path / "source")
    target.config.write_text(config)
    assert source.run("--method=random", "--max-finished-jobs=4").returncode == 0
    output = imported(target, source.root)
    assert "4 trials" in output
    assert "3 of them paused" in output
    assert "from the start" in output
    assert facts(target) == facts(source)
    assert "Already there: 4 trials" in imported(target, source.root)
    assert "No problem" in target.command("check").stdout
    table = tmp_path / "trials.csv"
    table.write_text(source.command("export").stdout)
    assert "Already there: 4 trials" in imported(target, table)
    other = make_experiment(CODE, config, tmp_path / "other")
    assert "3 of them paused" in imported(other, table)
    assert facts(other) == facts(source)


def test_an_imported_paused_trial_is_resumed_from_the_start(
    target: ExperimentDir, imported: Import, tmp_path: Path
) -> None:
    url = sqlite_url(tmp_path / "foreign.db")
    study_with_curves(url, *[([0.5 + i, 0.4 + i, 0.3 + i], None) for i in range(3)])
    imported(target, url)
    assert target.run("--method=random", "--max-finished-jobs=3").returncode == 0
    rows = {row["id"]: row for row in exported(target)}
    assert [rows[i]["state"] for i in (1, 2, 3)] == ["complete", "paused", "paused"]
    assert rows[1]["rungs"] == [0.5, 0.3]
    assert rows[1]["value"] == pytest.approx(1 / 9)
    assert (target.root / "epochs.txt").read_text().split() == [f"1.{e}" for e in range(1, 10)]
    assert "Already there: 3 trials" in imported(target, url), "also those resumed since then"


def test_curves_of_optuna_become_values_at_rungs(
    target: ExperimentDir, imported: Import, tmp_path: Path
) -> None:
    url = sqlite_url(tmp_path / "foreign.db")
    curve = [1 / step for step in range(1, 10)]
    study_with_curves(url, (curve, 0.1), ((), 0.2), (curve[:4], None), ((), None), (curve, 0.3))
    output = imported(target, url)
    assert "4 trials" in output
    assert "1 of them paused" in output
    assert "Skipped 1 paused or pruned trial without a value" in output
    assert facts(target) == [
        ("complete", [1.0, 1 / 3], 0.1, {"x": [0.0]}),
        ("complete", [1.0, 1 / 3], 0.3, {"x": [0.25]}),
        ("complete", [None, None], 0.2, {"x": [0.0625]}),
        ("paused", [1.0, 1 / 3], None, {"x": [0.125]}),
    ]
    assert json.loads(target.command("status", "--json").stdout)["rungs"]["9"] == 3
    table = target.command("export").stdout
    assert ",0.2," in table
    assert "nan" not in table
    assert "nan" not in target.command("show", "2").stdout


def test_without_rungs_paused_trials_are_left_out_and_said(
    make_experiment: MakeExperiment, imported: Import, tmp_path: Path
) -> None:
    url = sqlite_url(tmp_path / "foreign.db")
    study_with_curves(url, ([0.5], None), ([0.5], 0.25))
    experiment = make_experiment(CODE, ONE_FLOAT)
    output = imported(experiment, url)
    assert "Imported 1 trial " in output
    assert "Skipped 1 paused or pruned trial: " in output
    assert "no block fidelity" in output
    assert facts(experiment) == [("complete", None, 0.25, {"x": [0.0625]})]


def test_failed_rows_and_wrong_cells_of_a_table(
    target: ExperimentDir, imported: Import, refused: Import, tmp_path: Path
) -> None:
    table = tmp_path / "trials.csv"
    head = "state,value,x,value_at_1,value_at_3\n"
    table.write_text(head + "paused,,0.5,0.25,many\n")
    error = refused(target, table)
    assert "'many'" in error
    assert "step 3" in error
    table.write_text(head + "paused,,0.5,few,\n")
    assert "'few'" in refused(target, table), "not skipped for the want of a value"
    table.write_text(head + "broken,,0.5,0.25,\nrunning,,0.5,0.25,\npaused,,0.25,0.75,\n")
    assert "Imported 1 trial " in imported(target, table)
    assert facts(target) == [("paused", [0.75], None, {"x": [0.25]})]
    assert exported(target)[0]["seconds"] is None, "not 0: it is unknown"
