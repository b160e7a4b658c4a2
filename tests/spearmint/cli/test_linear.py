"""Commands on a search with linear constraints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import commands
from tests.spearmint.conftest import ExperimentDir, MakeExperiment

CONFIG = """language: PYTHON
name: "trial"
variable { name: "units" type: INT size: 2 min: 1 max: 64 }
variable { name: "x" type: FLOAT min: 0 max: 1 }
require: "units[0] >= units[1]"
require: "x + units[0] / 64 <= 1"
"""
CODE = """def main(job_id, params):
    first, second = params["units"]
    assert first >= second and params["x"][0] + first / 64 <= 1, params
    return float(-params["x"][0] - second)
"""


@pytest.fixture
def experiment(make_experiment: MakeExperiment) -> ExperimentDir:
    return make_experiment(CODE, CONFIG)


def rows(experiment: ExperimentDir) -> list[dict[str, list[float]]]:
    exported = json.loads(experiment.command("export", "--json").stdout)
    assert {row["state"] for row in exported} == {"complete"}
    return [row["params"] for row in exported]


def test_a_search_states_its_constraints(experiment: ExperimentDir) -> None:
    done = experiment.run("--max-finished-jobs=5", "--method=SequentialChooser")
    assert done.returncode == 0, done.stdout + done.stderr
    rows(experiment)
    for command in ("status", "check"):
        said = experiment.command(command)
        assert said.returncode == 0, said.stdout
        assert "units[0] >= units[1]" in said.stdout
    texts = ["units[0] >= units[1]", "x + units[0] / 64 <= 1"]
    assert json.loads(experiment.command("status", "--json").stdout)["require"] == texts
    assert json.loads(experiment.command("check", "--json").stdout)["require"] == texts
    shown = commands.spearmint("show", experiment.root, "3", "--json")
    assert json.loads(shown.stdout)["require"] == texts
    assert json.loads(shown.stdout)["violates"] == []
    assert experiment.command("report").returncode == 0
    page = next(experiment.root.rglob("*.html")).read_text()
    assert "units[0] &gt;= units[1]; x + units[0] / 64 &lt;= 1" in page


def test_points_outside_are_refused(experiment: ExperimentDir) -> None:
    def added(*words: str) -> tuple[int, str]:
        done = commands.spearmint("add", experiment.root, *words)
        return done.returncode, done.stdout + done.stderr

    assert experiment.run("--max-finished-jobs=1").returncode == 0
    for words in (["units=3,5"], ["units[0]=64", "x=0.5"], ["units[1]=60", "x=0.2"]):
        code, text = added(*words)
        assert code == 2
        assert "require" in text
    code, text = added("units[0]={8,16,64}", "x=0.5")
    assert code == 0, text
    assert "1 of 3" in text
    assert added("units[1]=30")[0] == 0
    done = experiment.run("--max-finished-jobs=4", "--method=SequentialChooser")
    assert done.returncode == 0, done.stdout + done.stderr
    params = rows(experiment)[1:]
    assert [each["units"][0] for each in params[:2]] == [8, 16]
    assert params[2]["units"][1] == 30


def test_a_search_without_a_feasible_point_does_not_start(experiment: ExperimentDir) -> None:
    path = experiment.root / "config.pb"
    path.write_text(f'{CONFIG}require: "units[1] - units[0] >= 60 - 50 * x"\n')
    for command in (["--max-finished-jobs=1"], ["--dry-run"]):
        refused = experiment.run(*command)
        assert refused.returncode == 2, refused.stdout
        assert "no point meets require" in refused.stderr
        assert "units[1] - units[0] >= 60" in refused.stderr
    assert not (experiment.root / "spearmint.db").exists()


def test_a_constraint_can_change_and_imported_trials_stay(
    experiment: ExperimentDir, tmp_path: Path
) -> None:
    table = tmp_path / "old.csv"
    table.write_text("units[0],units[1],x,value\n1,64,0.5,-99\n9,3,0.25,-3.25\n")
    done = commands.spearmint("import", experiment.root, table)
    assert done.returncode == 0, done.stderr
    best = experiment.command("best").stdout
    assert "trial: 1" in best
    assert "violates require: units[0] >= units[1]" in best
    assert "(violated)" in commands.spearmint("show", experiment.root, "1").stdout
    path = experiment.root / "config.pb"
    path.write_text(f'{CONFIG}require: "x <= 0.25"\n')
    done = experiment.run("--max-finished-jobs=6")
    assert done.returncode == 0, done.stdout + done.stderr
    params = rows(experiment)
    assert len(params) == 6
    assert all(each["x"][0] <= 0.25 for each in params[2:])
