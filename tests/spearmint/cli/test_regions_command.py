"""Regions with the real command: run, kill, resume, show, delete."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from PIL import Image

import spearmint
from spearmint.config.regions import read_regions
from spearmint.errors import InputError
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

CODE = (
    "import spearmint\n"
    "def main(job_id, params):\n"
    "    return {'us': 1.0, 'de': 2.0, 'jp': 3.0}[spearmint.region()] + params['x'][0]\n"
)
REGIONS = 'region: "us"\nregion: "de"\nregion: "jp"\n'
NAMES = ["us", "de", "jp"]


@pytest.fixture
def experiment(make_experiment: MakeExperiment) -> ExperimentDir:
    return make_experiment(CODE, ONE_FLOAT + REGIONS)


def states(experiment: ExperimentDir) -> dict[str, list[str]]:
    """Return the states of all trials by region."""
    rows = json.loads(experiment.command("export", "--json").stdout)
    return {name: [row["state"] for row in rows if row["region"] == name] for name in NAMES}


def test_every_command_tells_regions_apart(experiment: ExperimentDir) -> None:
    done = experiment.run("--max-finished-jobs=2", "-n", "3")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b6 complete\b.*\b3 regions\b.*\b0 broken\b", done.stdout)
    status = json.loads(experiment.command("status", "--json").stdout)
    assert [region["region"] for region in status["regions"]] == NAMES
    assert [region["trials"]["complete"] for region in status["regions"]] == [2, 2, 2]
    best = json.loads(experiment.command("best", "--json").stdout)
    assert [(trial["region"], int(trial["value"])) for trial in best] == [
        ("us", 1),
        ("de", 2),
        ("jp", 3),
    ]
    rows = list(csv.DictReader(io.StringIO(experiment.command("export").stdout)))
    assert [row["region"] for row in rows] == ["us"] * 2 + ["de"] * 2 + ["jp"] * 2
    assert "jp" in experiment.command("status").stdout


def test_one_region_can_be_looked_at(experiment: ExperimentDir) -> None:
    experiment.run("--max-finished-jobs=1", "-n", "3")
    assert experiment.command("best", "--region=de").stdout.startswith("region: de\nvalue: 2.")
    assert json.loads(experiment.command("status", "--region=de", "--json").stdout)["regions"]
    rows = json.loads(experiment.command("export", "--region=jp", "--json").stdout)
    assert [row["region"] for row in rows] == ["jp"]
    typo = experiment.command("best", "--region=dee")
    assert typo.returncode == 2
    assert re.search(r"'dee'.* us, de, jp\n.*'de'\?", typo.stderr)


def test_the_report_compares_regions_and_leads_to_each(experiment: ExperimentDir) -> None:
    experiment.run("--max-finished-jobs=2", "-n", "3")
    assert experiment.command("report").returncode == 0
    report = experiment.root / "report"
    page = (report / "index.html").read_text()
    for name in NAMES:
        assert f'<a href="{name}/index.html">{name}</a>' in page
        assert f'<span class="soft">{name}</span>' in (report / name / "index.html").read_text()
    shades = len(Image.open(report / "regions.png").convert("L").getcolors() or [])
    assert shades > 20, "the plot is empty"


def test_kill_at_any_instant_and_go_on(experiment: ExperimentDir) -> None:
    for pause in (0.9, 1.3, 1.6):
        controller = experiment.start("--max-finished-jobs=3", "-n", "3")
        time.sleep(pause)
        controller.kill()
        controller.communicate()
    assert experiment.run("--max-finished-jobs=3", "-n", "3").returncode == 0
    assert states(experiment) == {name: ["complete"] * 3 for name in NAMES}


def test_a_file_of_regions_and_one_more_later(experiment: ExperimentDir, tmp_path: Path) -> None:
    file = tmp_path / "regions.txt"
    file.write_text("us  # the first\n\n")
    assert experiment.run(f"--regions={file}", "--max-finished-jobs=1").returncode == 0
    assert json.loads(experiment.command("best", "--json").stdout)["region"] == "us"
    assert experiment.run("--max-finished-jobs=1").returncode == 0
    assert states(experiment) == {name: ["complete"] for name in NAMES}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("us\nUS\n", r"regions\.txt:2: .*'US'"),
        ("us\n\n../us\n", r"regions\.txt:3: .*'\.\./us'"),
        ("# none\n", r"/regions\.txt$"),
    ],
)
def test_a_bad_file_of_regions(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "regions.txt"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_regions(file)
    assert re.search(message, caught.value.what)


def test_a_bad_region_in_config_has_line_and_column(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE, ONE_FLOAT + 'region: "us"\nregion: "a/b"\n')
    done = experiment.run()
    assert done.returncode == 2
    assert re.search(r"config\.pb:5:1: .*'a/b'", done.stderr)


def test_a_search_stays_with_or_without_regions(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    assert experiment.run("--max-finished-jobs=1").returncode == 0
    experiment.config.write_text(ONE_FLOAT + REGIONS)
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 2
    assert "spearmint cleanup" in done.stderr
    assert "regions" in done.stderr
    experiment.config.write_text(ONE_FLOAT)
    assert json.loads(experiment.command("status", "--json").stdout)["trials"]["complete"] == 1


def test_cleanup_deletes_every_region(experiment: ExperimentDir) -> None:
    controller = experiment.start("--max-finished-jobs=9")
    assert controller.stdout is not None
    while "de trial 1" not in controller.stdout.readline():
        pass
    os.killpg(controller.pid, signal.SIGKILL)
    controller.communicate()
    assert experiment.command("cleanup").returncode == 0
    left = {path.name for path in experiment.root.iterdir()} - {"__pycache__"}
    assert left == {"config.pb", "trial.py"}


def test_ask_and_tell_of_one_region(experiment: ExperimentDir) -> None:
    with pytest.raises(InputError, match="us, de, jp"):
        spearmint.Search(experiment.config)
    for region in ("us", "de"):
        with spearmint.Search(experiment.config, region=region, method="RandomChooser") as search:
            search.tell(search.ask(), 0.5)
            assert [(trial.region, trial.id) for trial in search.trials] == [(region, 1)]
