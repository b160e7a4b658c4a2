"""Final models of two regions of real images: each is trained once, whatever is killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spearmint.layout import read_json
from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

KILLS = int(os.environ.get("KILLS", "10"))
CONFIG = """
language: PYTHON
name: "trial"
region: "small"
region: "large"
variable { name: "l2" type: FLOAT min: 1e-3 max: 1e3 log: true }
"""
CODE = """
import os
import time
from pathlib import Path

import numpy as np

import pycuda_nn as nn
import spearmint


def images():
    # Digits below 5, or the others: train, validation, test.
    parts = nn.split(nn.load_data("digits"), fractions=(0.6, 0.2, 0.2), seed=0)
    small = spearmint.region() == "small"
    return [(p.x[(p.y < 5) == small], p.y[(p.y < 5) == small]) for p in parts]


def ridge(x, y, l2):
    x = np.c_[x, np.ones(len(x))]
    targets = np.eye(10)[y]
    return np.linalg.solve(x.T @ x + l2 * np.eye(x.shape[1]), x.T @ targets)


def error(weights, x, y):
    return float(np.mean(np.argmax(np.c_[x, np.ones(len(x))] @ weights, axis=1) != y))


def main(job_id, params):
    train, valid, test = images()
    return error(ridge(*train, params["l2"][0]), *valid)


def final(job_id, params, model_dir):
    train, valid, test = images()
    x, y = (np.concatenate(both) for both in zip(train, valid))
    weights = ridge(x, y, params["l2"][0])
    (model_dir / "parts").mkdir()
    np.save(model_dir / "weights.npy", weights[:-1])
    time.sleep(float(os.environ.get("SLOW", "0")))
    np.save(model_dir / "parts" / "bias.npy", weights[-1])
    with open("trained.txt", "a") as file:
        file.write(f"{spearmint.region()}\\n")
    return {"value": error(weights, *test), "n": len(test[1]), "seen": len(y)}
"""
REGIONS = ("small", "large")


def call(experiment: ExperimentDir, command: str, *words: str) -> subprocess.CompletedProcess[str]:
    return commands.spearmint(command, *words, experiment.root)


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment(CODE, config=CONFIG)
    done = experiment.run("--max-finished-jobs=2")
    assert done.returncode == 0, done.stdout + done.stderr
    return experiment


def versions(experiment: ExperimentDir, region: str) -> list[Path]:
    return sorted((experiment.root / "models" / region).glob("[0-9]*"))


def is_whole(version: Path) -> bool:
    listed = json.loads((version / "model.json").read_text())["files"]
    found = {
        path.relative_to(version / "files").as_posix(): path.stat().st_size
        for path in (version / "files").rglob("*")
        if path.is_file()
    }
    return bool(found) and found == {entry["path"]: entry["bytes"] for entry in listed}


def test_the_best_of_each_region_is_trained_tested_and_promoted(searched: ExperimentDir) -> None:
    done = call(searched, "final", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    best = json.loads(searched.command("best", "--json").stdout)
    for row, trial in zip(rows, best, strict=True):
        version = Path(row["folder"])
        assert is_whole(version)
        assert {path.name for path in (version / "files").rglob("*.npy")} == {
            "weights.npy",
            "bias.npy",
        }
        assert json.loads((version / "params.json").read_text()) == trial["params"]
        metrics = json.loads((version / "metrics.json").read_text())
        assert 0 <= metrics["value"] < 0.5
        assert metrics["standard_error"] == pytest.approx(
            (metrics["value"] * (1 - metrics["value"]) / metrics["n"]) ** 0.5
        )
        origin = json.loads((version / "provenance.json").read_text())
        assert (origin["trial"], origin["region"]) == (trial["id"], row["region"])
        assert origin["jobs"][-1]["host"] == os.uname().nodename
        assert origin["sources"].keys() == {"config.pb", "trial.py"}
    assert call(searched, "promote", "--dry-run").returncode == 0
    assert not (searched.root / "models" / "small" / "current").exists()
    assert call(searched, "promote").returncode == 0
    assert (searched.root / "models" / "small" / "current").readlink() == Path("00000001")
    assert call(searched, "promote").returncode == 3
    assert call(searched, "final").returncode == 0
    assert [len(versions(searched, region)) for region in REGIONS] == [1, 1], "trained twice"
    assert call(searched, "final", "--retrain", "--region=small").returncode == 0
    assert [len(versions(searched, region)) for region in REGIONS] == [2, 1]
    assert call(searched, "promote", "--region=small").returncode == 3, "it is not better"
    assert call(searched, "rollback", "--region=small").returncode == 1
    searched.command("cleanup", "--yes")
    assert is_whole(versions(searched, "large")[0]), "cleanup deletes no model"


def test_a_trial_can_be_named_or_be_the_median(searched: ExperimentDir) -> None:
    best = json.loads(call(searched, "best", "--region=small", "--json").stdout)["id"]
    other = 3 - best
    for words, trial in (((f"--trial={other}",), other), (("--median-of=2",), best)):
        done = call(searched, "final", "--json", "--region=small", *words)
        (row,) = json.loads(done.stdout)
        origin = json.loads(Path(row["folder"], "provenance.json").read_text())
        assert origin["trial"] == trial
    assert call(searched, "final", "--trial=99", "--region=small").returncode == 2
    assert call(searched, "final", "--trial=1", "--median-of=2").returncode == 2


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("raise ValueError('no disk')", "no disk"),
        ("return 0.5", "model"),  # wrote nothing
        ("(model_dir / 'w').touch(); return 'x'", "'x'"),
        ("(model_dir / 'w').touch(); return float('nan')", "nan"),
        ("(model_dir / 'w').touch(); return {'error': 1}", "value"),
    ],
)
def test_a_failed_training_keeps_nothing_and_is_repeated(
    make_experiment: MakeExperiment, body: str, named: str
) -> None:
    good = "def main(job_id, params):\n    return 1.0\n"
    experiment = make_experiment(f"{good}def final(job_id, params, model_dir):\n    {body}\n")
    experiment.run("--max-finished-jobs=1")
    done = call(experiment, "final")
    assert done.returncode == 1, done.stdout
    assert named in done.stdout
    assert not versions(experiment, "trial")
    assert call(experiment, "promote").returncode == 2
    wrapper = experiment.root / "trial.py"
    wrapper.write_text(f"{good}def final(i, p, d):\n    (d / 'w').touch()\n    return 0.5\n")
    assert call(experiment, "final").returncode == 0
    assert [path.name for path in versions(experiment, "trial")] == ["00000001"]


def test_a_wrapper_without_the_function_says_so(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    assert call(experiment, "final").returncode == 2, "there is no search"
    experiment.run("--max-finished-jobs=1")
    done = call(experiment, "final")
    assert done.returncode == 1
    assert "final(job_id, params, model_dir)" in done.stdout


def test_a_shell_wrapper_finds_the_directory(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(
        config='language: SHELL\nname: "tool"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    )
    (experiment.root / "tool.sh").write_text(
        "echo 0.25 > $SPEARMINT_RESULT\n"
        '[ -z $SPEARMINT_MODEL_DIR ] || cp $SPEARMINT_PARAMS "$SPEARMINT_MODEL_DIR/model"\n'
        "".replace("$SPEARMINT_RESULT", '"$SPEARMINT_RESULT"')
        .replace("cp $SPEARMINT_PARAMS", 'cp "$SPEARMINT_PARAMS"')
        .replace("[ -z $SPEARMINT_MODEL_DIR ]", '[ -z "$SPEARMINT_MODEL_DIR" ]')
    )
    assert experiment.run("--max-finished-jobs=1").returncode == 0
    done = call(experiment, "final")
    assert done.returncode == 0, done.stdout
    (version,) = versions(experiment, "tool")
    assert (version / "files" / "model").read_text().startswith('{"x"')


def test_a_region_that_is_done_is_trained_by_the_same_search(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE, config=CONFIG)
    options = ("--max-finished-jobs=2", "--then-final")
    for _ in range(2):  # the second run finds everything done
        done = experiment.run(*options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert [len(versions(experiment, region)) for region in REGIONS] == [1, 1]
    assert (experiment.root / "trained.txt").read_text().split().count("small") == 1
    (experiment.root / "trial.py").write_text(CODE.replace("def final", "def finish"))
    done = experiment.run("--max-finished-jobs=6", "--then-final")
    assert done.returncode == (1 if best_changed(experiment) else 0), done.stdout


def best_changed(experiment: ExperimentDir) -> bool:
    """Return whether a region now has another best trial than the one that was trained."""
    best = json.loads(experiment.command("best", "--json").stdout)
    trained = [
        json.loads((versions(experiment, region)[0] / "provenance.json").read_text())["trial"]
        for region in REGIONS
    ]
    return [trial["id"] for trial in best] != trained


@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * KILLS)
def test_each_model_is_kept_once_by_killed_processes(searched: ExperimentDir) -> None:
    """Kill the command, its jobs or both at random instants, then promote, killed as well."""
    dice = random.Random(5)
    environment = {**os.environ, "SLOW": "0.5"}
    began = time.monotonic()
    assert call(searched, "final", "--retrain").returncode == 0
    longest_s = max(2.0, 1.5 * (time.monotonic() - began))
    current = dict.fromkeys(REGIONS, float("inf"))
    for _ in range(KILLS):
        for command in ("final", "promote"):
            words = [command, *(["--retrain"] if command == "final" else []), str(searched.root)]
            process = subprocess.Popen(
                [sys.executable, "-m", "spearmint", *words],
                env=environment,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            time.sleep(dice.uniform(0.0, longest_s))
            if dice.random() < 0.7:
                process.send_signal(signal.SIGKILL)
            process.wait()
            if dice.random() < 0.3:
                kill_runners(searched)
            for region in REGIONS:
                assert all(map(is_whole, versions(searched, region)))
                link = searched.root / "models" / region / "current"
                value = (
                    json.loads((link / "metrics.json").read_text())["value"]
                    if (link.is_symlink())
                    else float("inf")
                )
                assert value <= current[region], "a worse model is current"
                current[region] = value
    assert call(searched, "final").returncode == 0
    assert call(searched, "promote").returncode in (0, 3)
    trained = (searched.root / "trained.txt").read_text().split()
    for region in REGIONS:
        kept = versions(searched, region)
        assert all(map(is_whole, kept))
        assert len(kept) == len({version.name for version in kept})
        assert len(kept) <= trained.count(region)
        assert (searched.root / "models" / region / "current").exists()
        assert not list((searched.root / "models" / region).glob(".*.part"))


def kill_runners(experiment: ExperimentDir) -> None:
    for path in experiment.root.glob("regions/*/final/*/runner.json"):
        pid = (read_json(path) or {}).get("pid", 0)  # a job that ends can delete the file
        with contextlib.suppress(OSError):  # it has ended
            if "spearmint" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("option", ["--then-final", "--again"])
def test_several_objectives_have_no_best_trial(
    make_experiment: MakeExperiment, option: str
) -> None:
    objectives = 'objective { name: "error" }\nobjective { name: "seconds" }\n'
    code = "def main(job_id, params):\n    return {'error': 1.0, 'seconds': 2.0}\n"
    experiment = make_experiment(code, config=ONE_FLOAT + objectives)
    done = experiment.run("--max-finished-jobs=1", option)
    assert done.returncode == 2, done.stdout
    assert "objectives" in done.stderr
    assert not (experiment.root / "spearmint.db").exists()
