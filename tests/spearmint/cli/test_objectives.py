"""Commands on a search with several objectives."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

CONFIG = (
    ONE_FLOAT + 'objective { name: "error" }\nobjective { name: "speed" direction: MAXIMIZE }\n'
)
CODE = """def main(job_id, params):
    x = params["x"][0]
    return {"error": (x - 0.5) ** 2, "speed": x}
"""


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment(CODE, CONFIG)
    done = experiment.run("--max-finished-jobs=8")
    assert done.returncode == 0, done.stderr
    assert "error=" in done.stdout
    assert "<- Pareto front" in done.stdout
    return experiment


def test_all_commands_agree_on_the_front(searched: ExperimentDir) -> None:
    rows = json.loads(searched.command("export", "--json").stdout)
    values = [(row["values"]["error"], -row["values"]["speed"]) for row in rows]
    front = {
        row["id"]
        for row, mine in zip(rows, values, strict=True)
        if not any(a <= mine[0] and b <= mine[1] and (a, b) != mine for a, b in values)
    }
    assert 0 < len(front) < 8
    found = json.loads(searched.command("best", "--json").stdout)
    assert {row["id"] for row in found} == front
    errors = [row["values"]["error"] for row in found]
    assert errors == sorted(errors)
    status = json.loads(searched.command("status", "--json").stdout)
    assert status["front"] == found
    assert "best" not in status
    assert "Pareto front" in searched.command("status").stdout
    shown = searched.command("best").stdout
    assert "speed" in shown
    assert len(shown.splitlines()) == len(front) + 1
    table = list(csv.DictReader(io.StringIO(searched.command("export").stdout)))
    assert [float(row["speed"]) for row in table] == [row["values"]["speed"] for row in rows]
    assert "value" not in table[0]
    assert not (searched.root / "best_job_and_result.txt").exists()


def test_the_report_shows_the_front(searched: ExperimentDir) -> None:
    assert searched.command("report").returncode == 0
    page = (searched.root / "report" / "index.html").read_text()
    assert "Pareto front" in page
    assert "minimise error, maximise speed" in page
    assert (searched.root / "report" / "pareto_front.png").stat().st_size > 1000
    assert not (searched.root / "report" / "best_value.png").exists()


def test_the_search_continues(searched: ExperimentDir) -> None:
    done = searched.run("--max-finished-jobs=10", "--method=GPEIOptChooser")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(searched.command("export", "--json").stdout)) == 10


def test_results_are_imported(searched: ExperimentDir, make_experiment: MakeExperiment) -> None:
    exported = searched.root / "t.csv"
    assert searched.command("export", "--csv", "-o", str(exported)).returncode == 0
    expected = [row["values"] for row in json.loads(searched.command("best", "--json").stdout)]
    for name, source in (("by_csv", exported), ("by_study", searched.root)):
        other = make_experiment(CODE, CONFIG, searched.root.parent / name)
        for _ in range(2):  # the second time, all are already there
            done = commands.spearmint("import", other.root, source)
            assert done.returncode == 0, done.stderr
        found = json.loads(other.command("best", "--json").stdout)
        assert [row["values"] for row in found] == expected
        assert len(json.loads(other.command("export", "--json").stdout)) == 8
    swapped = CONFIG.replace(" direction: MAXIMIZE", "")
    other = make_experiment(CODE, swapped, searched.root.parent / "swapped")
    refused = commands.spearmint("import", other.root, searched.root)
    assert refused.returncode == 2
    assert "maximize" in refused.stderr


@pytest.mark.parametrize(
    ("option", "key"),
    [("--target=0.1", ""), ("--pruner=median", ""), ("", 'pruner: "median"\n')],
)
def test_what_needs_one_objective_is_refused(
    make_experiment: MakeExperiment, option: str, key: str
) -> None:
    done = make_experiment(CODE, CONFIG + key).run(*filter(None, [option]))
    assert done.returncode == 2
    assert "one objective" in done.stderr
    assert not (done.stdout)


def test_a_chooser_for_one_objective_is_refused(make_experiment: MakeExperiment) -> None:
    done = make_experiment(CODE, CONFIG).run("--method=GPEIperSec", "--max-finished-jobs=1")
    assert done.returncode == 0
    refused = make_experiment(CODE, CONFIG).run("--method=GPConstrainedEI")
    assert refused.returncode == 2
    assert "GPEIOptChooser" in refused.stderr


def test_a_missing_objective_fails_the_trial(make_experiment: MakeExperiment) -> None:
    code = "def main(job_id, params):\n    return {'error': 1.0, 'sped': 2.0}\n"
    done = make_experiment(code, CONFIG).run("--max-finished-jobs=2", "--max-broken=1")
    assert done.returncode == 1
    assert "Did you mean 'speed'?" in done.stderr


def test_patience_counts_trials_without_a_place_on_the_front(
    make_experiment: MakeExperiment,
) -> None:
    code = "def main(job_id, params):\n    return {'error': float(job_id > 1), 'speed': 0.0}\n"
    done = make_experiment(code, CONFIG).run("--max-finished-jobs=9", "--patience=3")
    assert done.returncode == 0
    assert done.stdout.count("error=") == 4


def test_other_commands_on_several_objectives(searched: ExperimentDir) -> None:
    shown = commands.spearmint("show", searched.root, "1")
    assert shown.returncode == 0, shown.stderr
    assert "error=" in shown.stdout
    checked = searched.command("check")
    assert checked.returncode == 0, checked.stderr
    refused = searched.command("final")
    assert refused.returncode == 2
    assert "objectives" in refused.stderr


def test_the_report_compares_the_fronts_of_regions(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE, CONFIG + 'region: "us"\nregion: "de"\n')
    assert experiment.run("--max-finished-jobs=3").returncode == 0
    done = experiment.command("report")
    assert done.returncode == 0, done.stderr
    page = (experiment.root / "report" / "index.html").read_text()
    assert "Pareto front of each region" in page
    for region in ("us", "de"):
        front = json.loads(experiment.command("best", "--json", f"--region={region}").stdout)
        words = f"{len(front)} trial" + ("s" if len(front) != 1 else "")
        assert f'<a href="{region}/index.html">{region}</a></td><td>{words}</td>' in page
        assert (experiment.root / "report" / region / "pareto_front.png").exists()


BOTH = 'objective { name: "error" }\nobjective { name: "seconds_used" }\n'
SWAPPED = 'objective { name: "seconds_used" }\nobjective { name: "error" }\n'
COSTS = """def main(job_id, params):
    return {"error": params["x"][0], "seconds_used": 100 - params["x"][0]}
"""


def test_the_order_of_objectives_cannot_swap_their_values(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(COSTS, ONE_FLOAT + BOTH)
    assert experiment.run("--max-finished-jobs=2", "--method=RandomChooser").returncode == 0
    expected = json.loads(experiment.command("best", "--json").stdout)
    other = make_experiment(COSTS, ONE_FLOAT + SWAPPED, experiment.root.parent / "other")
    done = commands.spearmint("import", other.root, experiment.root)
    assert done.returncode == 0, done.stderr
    found = json.loads(other.command("best", "--json").stdout)
    assert [row["values"] for row in found[::-1]] == [row["values"] for row in expected]
    config = experiment.root / "config.pb"
    config.write_text(ONE_FLOAT + SWAPPED)
    done = experiment.command("best")
    assert done.returncode == 2
    assert "stored error, seconds_used; config.pb seconds_used, error" in done.stderr
    config.write_text(ONE_FLOAT + BOTH)
    assert json.loads(experiment.command("best", "--json").stdout) == expected


def test_other_objectives_are_not_imported(
    searched: ExperimentDir, make_experiment: MakeExperiment
) -> None:
    config = CONFIG.replace("error", "loss")
    other = make_experiment(CODE, config, searched.root.parent / "other")
    done = commands.spearmint("import", other.root, searched.root)
    assert done.returncode == 2
    assert "error, speed" in done.stderr
    assert "loss, speed" in done.stderr
