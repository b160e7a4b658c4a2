"""``spearmint best`` and the report under noise."""

from __future__ import annotations

import json
import re

import pytest

from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

# The noise depends on the job only, so that the test can compute the true value.
NOISY = (
    "import random\n"
    "def main(job_id, params):\n"
    "    x = float(params['x'][0])\n"
    "    return SIGN * ((x - 0.3) ** 2 + random.Random(job_id).gauss(0.0, 0.1))\n"
)


@pytest.mark.parametrize(("sign", "word"), [(1.0, "lowest"), (-1.0, "highest")])
def test_under_noise_the_model_recommends(
    make_experiment: MakeExperiment, sign: float, word: str
) -> None:
    direction = "direction: MAXIMIZE\n" if sign < 0 else ""
    experiment = make_experiment(f"SIGN = {sign}\n{NOISY}", ONE_FLOAT + direction)
    assert experiment.run("--max-finished-jobs=40", "--grid-seed=1").returncode == 0

    best = json.loads(experiment.command("best", "--json").stdout)

    rows = json.loads(experiment.command("export", "--json").stdout)
    luckiest = min(rows, key=lambda row: sign * row["value"])
    model = best.pop("model")
    assert best in rows
    assert 0.05 < model["noise_sd"] < 0.2
    assert abs(model["expected"]) < 4.0 * model["sd"] < 0.4
    assert (model["best_value"]["id"], model["best_value"]["value"]) == (
        luckiest["id"],
        luckiest["value"],
    )
    text = experiment.command("best").stdout
    assert f"trial: {best['id']}\n" in text
    assert re.search(r"^expected: -?0\.\d+ ± 0\.\d+ .*± 0\.\d+\)$", text, re.MULTILINE)
    assert re.search(rf"\b{word} value\b", text)
    assert experiment.command("best").stdout == text, "the same answer each time"
    assert experiment.command("report").returncode == 0
    page = (experiment.root / "report" / "index.html").read_text()
    for line in text.splitlines()[-2:]:
        assert line in page
    assert re.search(rf"\brecommended\b.*\btrial {best['id']}\b", page)


def test_under_noise_each_region_has_its_expectation(make_experiment: MakeExperiment) -> None:
    config = ONE_FLOAT + 'region: "us"\nregion: "de"\n'
    experiment = make_experiment(f"SIGN = 1.0\n{NOISY}", config)
    method = "--method=RandomChooser"
    assert experiment.run("--max-finished-jobs=40", "--grid-seed=1", method).returncode == 0
    lines = experiment.command("best").stdout.splitlines()
    for region in ("us", "de"):
        alone = experiment.command("best", f"--region={region}").stdout.splitlines()[-2:]
        assert alone[0].startswith("expected: ")
        for line in alone:
            assert f"{region}: {line}" in lines


def test_without_noise_nothing_changes(make_experiment: MakeExperiment) -> None:
    code = "def main(job_id, params):\n    return (params['x'][0] - 0.3) ** 2\n"
    experiment: ExperimentDir = make_experiment(code)
    assert experiment.run("--max-finished-jobs=20").returncode == 0
    rows = json.loads(experiment.command("export", "--json").stdout)
    best = min(rows, key=lambda row: row["value"])
    assert json.loads(experiment.command("best", "--json").stdout) == best
    assert "±" not in experiment.command("best").stdout
