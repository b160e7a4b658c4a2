"""What ``show``, ``status`` and the report say about the GPUs of trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spearmint.html_report import write_report
from spearmint.layout import Layout, write_json
from spearmint.store.session import read_sessions
from spearmint.view.gpu_use import PAGE, summary_lines, summary_of, use_lines
from tests import commands
from tests.docs.tools import ROOT
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

FAKE = Path(__file__).parents[1] / "trial/gpu_use/fake"
GPU = {"gpu": "0", "busy": 0.58, "memory_mib": 4200, "memory_total_mib": 81920}
CODE = """
import json, os, time

def main(job_id, params):
    while json.load(open(os.environ["FAKE_GPUS"]))["gpus"][0].get("samples", 0) < 3:
        time.sleep(0.01)
    return float(params["x"][0])
"""


def use(busy: float | None = 0.58, **more: Any) -> dict[str, Any]:
    known = {"seconds": 100.0, "first_use_s": 12.0, "shared": False, "gpu_busy": busy}
    return {**known, "gpus": [{**GPU, "busy": busy}], **more}


def test_a_gpu_that_waits_is_told_with_what_to_do() -> None:
    busy, waited = use_lines(use())
    assert busy == "GPU busy 58 %, first used after 12.0 s, memory 4.1 of 80 GiB"
    assert waited.startswith("GPU waited 42 % for data or CPU work")
    assert PAGE in waited
    assert (ROOT / PAGE).exists()


@pytest.mark.parametrize(
    "quiet",
    [use(0.9), use(seconds=20.0), use(shared=True), use(None)],
    ids=["busy", "short", "shared", "not measured"],
)
def test_no_advice_without_a_reason(quiet: dict[str, Any]) -> None:
    assert len(list(use_lines(quiet))) == 1
    assert not [line for line in summary_lines(summary_of([quiet])) if "waited" in line]


def test_an_unused_gpu_and_uneven_gpus_are_told() -> None:
    assert "--gpus=0" in list(use_lines(use(0.0, first_use_s=None)))[1]
    gpus = [{**GPU, "busy": 0.9}, {**GPU, "gpu": "1", "busy": 0.3}]
    assert next(use_lines(use(0.6, gpus=gpus))).startswith("GPU busy 60 % (0: 90 %, 1: 30 %)")


def test_a_long_trial_counts_more_than_a_short_one() -> None:
    summary = summary_of([use(0.5, seconds=312.0), use(1.0, seconds=112.0), use(None)])
    assert summary is not None
    assert summary.to_json() == {"gpu_busy": 0.625, "trials": 2, "shared": False}
    assert summary_of([]) is None


def called(experiment: ExperimentDir, *words: str) -> str:
    done = commands.spearmint(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_search_shows_how_busy_its_gpus_were(
    make_experiment: MakeExperiment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = tmp_path / "gpus.json"
    gpu = {"uuid": "GPU-1", "busy": [80], "used": [512], "total": 1024}
    host.write_text(json.dumps({"gpus": [gpu]}))
    for name, value in (("FAKE_GPUS", host), ("PYTHONPATH", FAKE), ("CUDA_VISIBLE_DEVICES", "0")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("SPEARMINT_GPU_SAMPLE_S", "0.01")
    experiment = make_experiment(CODE, ONE_FLOAT)
    called(experiment, "--method=random", "--max-finished-jobs=1", str(experiment.root))
    assert "GPU busy 80 %" in called(experiment, "show", str(experiment.root), "1")
    status = called(experiment, "status", str(experiment.root))
    assert "GPU busy 80 % (1 trial)" in status
    data = json.loads(called(experiment, "status", "--json", str(experiment.root)))
    assert data["gpu_use"]["gpu_busy"] == 0.8
    page = json.loads(called(experiment, "show", "--json", str(experiment.root), "1"))
    assert page["attempts"][0]["gpu_use"]["gpus"][0]["memory_mib"] == 512
    (session,) = read_sessions(experiment.root, None, None)
    text = write_report([session], tmp_path / "report").read_text()
    assert "<dt>GPU busy</dt><dd>80 %</dd>" in text
    assert "<td>80 %</td>" in text


def test_paused_trials_count(make_experiment: MakeExperiment, tmp_path: Path) -> None:
    rungs = 'fidelity { name: "epochs" min: 1 max: 2 reduction_factor: 2 }\n'
    experiment = make_experiment("def main(j, p): return 1.0\n", ONE_FLOAT + rungs)
    called(experiment, "--method=random", "--max-finished-jobs=1", str(experiment.root))
    folder = Layout(experiment.root).folder(1)
    start = json.loads(folder.runner.read_text())["start"]
    write_json(folder.gpu_use, {"start": start, **use()})
    status = called(experiment, "status", str(experiment.root))
    assert "GPU busy 58 % (1 trial)" in status
    (row,) = [line for line in status.splitlines() if line.split()[:1] == ["1"]]
    assert "58 %" in row
    text = write_report(read_sessions(experiment.root, None, None), tmp_path / "a").read_text()
    assert "GPU waited 42 %" in text


def test_export_has_the_gpus_of_all_jobs_of_a_trial(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment("def main(j, p): return 1.0\n", ONE_FLOAT)
    called(experiment, "--method=random", "--max-finished-jobs=2", str(experiment.root))
    plain = called(experiment, "export", str(experiment.root))
    assert "gpu" not in plain
    folder = Layout(experiment.root).folder(1)
    start = json.loads(folder.runner.read_text())["start"]
    write_json(folder.gpu_use, {"start": start, **use(0.25, seconds=312.0)})
    first = {"start": start - 100, "ended": start, "gpu_use": use(1.0, seconds=112.0, shared=True)}
    folder.attempts.write_text(json.dumps(first) + "\n")
    one, two = json.loads(called(experiment, "export", "--json", str(experiment.root)))
    facts = {"gpu_busy": 0.4375, "gpu_memory_mib": 4200, "gpu_shared": True}
    assert {name: one.get(name) for name in facts} == facts
    assert "gpu_busy" not in two
    head, first_row, second_row = called(experiment, "export", str(experiment.root)).splitlines()
    assert head.endswith(",x,gpu_busy,gpu_memory_mib,gpu_shared")
    assert first_row.endswith(",0.4375,4200,true")
    assert second_row.endswith(",,,")


def test_the_report_gives_the_advice(
    make_experiment: MakeExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make_experiment("def main(j, p): return 1.0\n", ONE_FLOAT)
    called(experiment, "--method=random", "--max-finished-jobs=1", str(experiment.root))
    folder = Layout(experiment.root).folder(1)
    start = json.loads(folder.runner.read_text())["start"]
    text = write_report(read_sessions(experiment.root, None, None), tmp_path / "a").read_text()
    assert "GPU busy" not in text
    assert "GPU" not in called(experiment, "status", str(experiment.root))
    write_json(folder.gpu_use, {"start": start, **use()})
    text = write_report(read_sessions(experiment.root, None, None), tmp_path / "b").read_text()
    assert "GPU waited 42 %" in text
    assert "GPU waited 42 %" in called(experiment, "status", str(experiment.root))
