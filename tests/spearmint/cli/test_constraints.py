"""Commands on a search with constraints."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

CONFIG = ONE_FLOAT + 'constraint { name: "memory_gb" max: 80 }\n'
CODE = """def main(job_id, params):
    x = params["x"][0]
    return {"objective": x, "memory_gb": 100 - 100 * x}
"""


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment(CODE, CONFIG)
    done = experiment.run("--max-finished-jobs=8")
    assert done.returncode == 0, done.stderr
    assert "infeasible: memory_gb=" in done.stdout
    assert " feasible" in done.stdout
    return experiment


def test_all_commands_agree_on_the_best_feasible_trial(searched: ExperimentDir) -> None:
    rows = json.loads(searched.command("export", "--json").stdout)
    for row in rows:
        assert row["feasible"] == (row["constraints"]["memory_gb"] <= 80.0)
    assert len({row["feasible"] for row in rows}) == 2
    best = min((row for row in rows if row["feasible"]), key=lambda row: row["value"])
    assert json.loads(searched.command("best", "--json").stdout) == best
    assert json.loads(searched.command("status", "--json").stdout)["best"] == best
    assert "memory_gb: " in searched.command("best").stdout
    table = list(csv.DictReader(io.StringIO(searched.command("export").stdout)))
    assert [float(row["memory_gb"]) for row in table] == [
        row["constraints"]["memory_gb"] for row in rows
    ]
    assert [row["feasible"] == "true" for row in table] == [row["feasible"] for row in rows]
    written = (searched.root / "best_job_and_result.txt").read_text()
    assert f"Job-id: {best['id']}\n" in written
    shown = searched.command("status", "--top=8").stdout
    assert shown.count("infeasible") == sum(not row["feasible"] for row in rows)


def test_results_are_imported_with_their_constraints(
    searched: ExperimentDir, make_experiment: MakeExperiment
) -> None:
    exported = searched.root / "t.csv"
    assert searched.command("export", "--csv", "-o", str(exported)).returncode == 0
    expected = json.loads(searched.command("best", "--json").stdout)
    for name, source in (("by_csv", exported), ("by_study", searched.root)):
        other = make_experiment(CODE, CONFIG, searched.root.parent / name)
        done = commands.spearmint("import", other.root, source)
        assert done.returncode == 0, done.stderr
        best = json.loads(other.command("best", "--json").stdout)
        assert (best["value"], best["constraints"]) == (
            expected["value"],
            expected["constraints"],
        )
    text = exported.read_text().replace("memory_gb", "memory")
    exported.write_text(text)
    refused = commands.spearmint("import", other.root, exported)
    assert refused.returncode == 2
    assert "'memory_gb'" in refused.stderr


def test_a_search_without_a_feasible_trial(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE.replace("100 - 100", "200 - 100"), CONFIG)
    assert experiment.run("--max-finished-jobs=3").returncode == 0
    found = experiment.command("best")
    assert found.returncode == 1
    assert "feasible" in found.stderr
    assert json.loads(experiment.command("status", "--json").stdout)["best"] is None
    assert "infeasible" in experiment.command("status").stdout
    assert not (experiment.root / "best_job_and_result.txt").exists()
    assert experiment.command("report").returncode == 0


def test_a_missing_value_fails_the_trial_and_says_which(make_experiment: MakeExperiment) -> None:
    code = "def main(job_id, params):\n    return {'objective': 1.0, 'memory': 2.0}\n"
    done = make_experiment(code, CONFIG).run("--max-finished-jobs=2", "--max-broken=1")
    assert done.returncode == 1
    assert "'memory'" in done.stderr
    assert "Did you mean 'memory_gb'?" in done.stderr


def test_a_shell_trial_writes_json(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment("", CONFIG.replace("PYTHON", "SHELL"))
    script = experiment.root / "trial.sh"
    script.write_text(
        "#!/bin/sh\n"
        'echo "{\\"objective\\": $SPEARMINT_PARAM_x, \\"memory_gb\\": 81}" > "$SPEARMINT_RESULT"\n'
    )
    script.chmod(0o700)
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    assert "infeasible: memory_gb=81" in done.stdout


REGIONS = CONFIG + 'region: "us"\nregion: "de"\n'
HALF = """
import spearmint

def main(job_id, params):
    return {"objective": params["x"][0], "memory_gb": 90 if spearmint.region() == "us" else 70}

def final(job_id, params, model_dir):
    (model_dir / "weights").write_text("1")
    return params["x"][0]
"""


def test_a_region_without_a_feasible_trial_does_not_end_the_others(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(HALF, REGIONS)
    for _ in range(2):  # the second time, all trials are finished
        done = experiment.run("--max-finished-jobs=3", "--then-final", "--again")
        assert done.returncode == 1
        assert "'trial@us' is feasible" in done.stderr
        assert "of 6 complete trials" in done.stdout
        assert [path.parent.name for path in experiment.root.glob("models/*/[0-9]*")] == ["de"]
    alone = experiment.command("final", "--region=us")
    assert alone.returncode == 2
    assert "'trial@us' is feasible" in alone.stderr


def test_the_report_shows_a_region_without_a_feasible_trial(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(HALF, REGIONS)
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    done = experiment.command("report")
    assert done.returncode == 0, done.stderr
    rows = (experiment.root / "report" / "index.html").read_text().splitlines()
    (us,) = [row for row in rows if 'href="us/index.html"' in row]
    assert us.count("<td>\N{EN DASH}</td>") == 2
    assert (experiment.root / "report" / "regions.png").stat().st_size > 1000


def test_a_warm_start_prefers_feasible_points(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE, REGIONS + "warm_start: 1\n")
    done = experiment.run("--max-finished-jobs=8", "--method=RandomChooser")
    assert done.returncode == 0, done.stderr
    assert "warm start with 1 points" in done.stdout
    rows = json.loads(experiment.command("export", "--json").stdout)
    assert any(not row["feasible"] for row in rows if row["region"] == "us")
    first = next(row for row in rows if row["region"] == "de")
    assert first["feasible"]
