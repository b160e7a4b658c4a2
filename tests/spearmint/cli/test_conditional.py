"""Commands on a search with conditional variables."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests import commands
from tests.spearmint.conftest import ExperimentDir, MakeExperiment

CONFIG = """language: PYTHON
name: "trial"
variable { name: "C" type: FLOAT size: 2 min: 1 max: 9 when: "model=svm" }
variable { name: "model" type: ENUM options: "svm" options: "forest" }
variable { name: "depth" type: INT min: 1 max: 9 when: "model=forest" }
variable { name: "x" type: FLOAT min: 0 max: 1 }
"""
CODE = """def main(job_id, params):
    expected = {"svm": {"C"}, "forest": {"depth"}}[params["model"][0]]
    assert set(params) == {"model", "x"} | expected, params
    return float(params["x"][0] + sum(params.get("depth", params.get("C"))))
"""


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment(CODE, CONFIG)
    done = experiment.run("--max-finished-jobs=12", "--grid-seed=3")
    assert done.returncode == 0, done.stdout + done.stderr
    return experiment


def test_inactive_variables_are_empty(searched: ExperimentDir) -> None:
    rows = json.loads(searched.command("export", "--json").stdout)
    assert {row["state"] for row in rows} == {"complete"}
    table = list(csv.DictReader(io.StringIO(searched.command("export").stdout)))
    for row, cells in zip(rows, table, strict=True):
        is_svm = row["params"]["model"] == ["svm"]
        assert ("C" in row["params"], "depth" in row["params"]) == (is_svm, not is_svm)
        assert (cells["C[0]"] == "", cells["C[1]"] == "") == (not is_svm, not is_svm)
        assert (cells["depth"] == "") == is_svm
    assert {row["params"]["model"][0] for row in rows} == {"svm", "forest"}
    best = min(rows, key=lambda row: row["value"])
    written = (searched.root / "best_job_and_result.txt").read_text()
    assert f"Job-id: {best['id']}\n" in written
    inactive = "depth" if best["params"]["model"] == ["svm"] else "C"
    assert f'name: "{inactive}"' not in written
    assert f"{inactive}:" not in searched.command("best").stdout
    assert f"{inactive}:" not in commands.spearmint("show", searched.root, str(best["id"])).stdout
    assert searched.command("status", "--top=12").returncode == 0
    done = searched.command("report")
    assert done.returncode == 0, done.stderr
    page = next(searched.root.rglob("*.html")).read_text()
    assert "None" not in page
    assert "<td" in page


def test_an_export_can_be_imported(
    searched: ExperimentDir, make_experiment: MakeExperiment
) -> None:
    exported = searched.root / "t.csv"
    assert searched.command("export", "--csv", "-o", str(exported)).returncode == 0
    expected = [row["params"] for row in json.loads(searched.command("export", "--json").stdout)]
    for name, source in (("by_csv", exported), ("by_study", searched.root)):
        other = make_experiment(CODE, CONFIG, searched.root.parent / name)
        done = commands.spearmint("import", other.root, source)
        assert done.returncode == 0, done.stderr
        rows = json.loads(other.command("export", "--json").stdout)
        assert [row["params"] for row in rows] == expected
    text = exported.read_text().splitlines()
    broken = [text[0], *(line for line in text[1:] if ",svm," in line)]
    exported.write_text("\n".join(line.replace(",svm,", ",forest,") for line in broken))
    refused = commands.spearmint("import", other.root, exported)
    assert refused.returncode == 2
    assert "depth: missing" in refused.stderr


def test_points_are_added_by_branch(searched: ExperimentDir) -> None:
    refused = commands.spearmint("add", searched.root, "model=svm", "depth=3")
    assert refused.returncode == 2
    assert "model=forest" in refused.stderr
    done = commands.spearmint("add", searched.root, "model={svm,forest}", "depth={3,4}", "x=0.5")
    assert done.returncode == 0, done.stderr
    assert "3 points" in done.stdout
    again = commands.spearmint("add", searched.root, "model=forest", "depth=4", "x=0.5")
    assert "1 were tried or queued before" in again.stdout
    assert searched.run("--max-finished-jobs=15").returncode == 0
    rows = json.loads(searched.command("export", "--json").stdout)[-3:]
    assert [row["params"].get("depth") for row in rows] == [None, [3], [4]]
    repeated = commands.spearmint("add", searched.root, "model=forest", "depth=4", "x=0.5")
    assert "1 were tried or queued before" in repeated.stdout
