"""``--again``: the next generation begins with the best points, and nothing is lost by a kill."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment

CODE = """
import spearmint

def main(job_id, params):
    return abs(float(params["x"][0]) - 0.5)

def final(job_id, params, model_dir):
    (model_dir / "x").write_text(str(params["x"][0]))
    return abs(float(params["x"][0]) - 0.5)
"""
REGIONS = ONE_FLOAT + 'region: "de"\nregion: "us"\n'


def rows(directory: Path) -> list[dict]:
    return json.loads(commands.spearmint("export", "--json", directory).stdout)


def best_points(directory: Path, region: str, count: int = 3) -> list[list[float]]:
    found = [row for row in rows(directory) if row.get("region", "") == region]
    return [row["params"]["x"] for row in sorted(found, key=lambda row: row["value"])][:count]


def first_points(directory: Path, region: str, count: int = 3) -> list[list[float]]:
    found = [row for row in rows(directory) if row.get("region", "") == region]
    return [row["params"]["x"] for row in found][:count]


def test_a_generation_begins_with_the_best_points_of_the_last(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE, config=REGIONS)
    options = ("--again", "--then-final", "--max-finished-jobs=4")
    for generation in range(3):
        done = experiment.run(*options)
        assert done.returncode == 0, done.stdout + done.stderr
        old = experiment.root / "generations" / f"{generation:08d}"
        assert old.exists() is (generation > 0)
        for region in ("de", "us"):
            assert len(rows(experiment.root)) == 8
            models = experiment.root / "models" / region
            assert len(list(models.glob("[0-9]*"))) == generation + 1
            if generation:
                assert first_points(experiment.root, region) == best_points(old, region)
        assert experiment.command("promote").returncode in (0, 3)
    assert len(rows(experiment.root / "generations" / "00000001")) == 8


def test_a_generation_learns_from_the_last_one_of_its_region(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE, config=REGIONS + 'learn_from: "generations"\n')
    fast = ("--method=GPEIOptChooser", "--method-args=mcmc_iters=2,burnin=1", "--again")
    for generation in range(2):
        done = experiment.run(*fast, "--max-finished-jobs=5")
        assert done.returncode == 0, done.stdout + done.stderr
        status = json.loads(experiment.command("status", "--json").stdout)
        old = experiment.root / "generations" / f"{generation:08d}"
        for found in status["regions"]:
            region = found["region"]
            known = [each["search"] for each in found.get("learns_from", [])]
            assert known == ([f"{old} ({region})"] if generation else [])
            if generation:  # the points of --again, and no more
                assert f"learns from {known[0]}: 5 trials, variable x" in done.stdout
                assert first_points(experiment.root, region) == best_points(old, region)


def test_a_generation_that_is_not_finished_continues(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    experiment.run("--max-finished-jobs=2")
    done = experiment.run("--again", "--max-finished-jobs=3")
    assert done.returncode == 0, done.stderr
    assert len(rows(experiment.root)) == 3
    assert not (experiment.root / "generations").exists()
    assert experiment.run("--again", "--max-finished-jobs=3").returncode == 0
    assert len(rows(experiment.root)) == 3
    assert (experiment.root / "generations" / "00000001").is_dir()


def test_another_storage_is_refused(make_experiment: MakeExperiment, tmp_path: Path) -> None:
    experiment = make_experiment(CODE)
    url = f"--storage=sqlite:///{tmp_path}/other.db"
    experiment.run("--max-finished-jobs=1", url)
    (experiment.root / "spearmint.db").touch()
    done = experiment.run("--again", "--max-finished-jobs=1", url)
    assert done.returncode == 2
    assert "spearmint.db" in done.stderr


_KILLED = """
import os, sys
from pathlib import Path
from spearmint.config.reader import load_experiment
from spearmint.controller.limits import StudyLimits
from spearmint.generations import turn_over

left = int(sys.argv[1])
def count(event, args):
    global left
    if event in ("os.rename", "os.mkdir", "os.remove", "shutil.copyfile", "sqlite3.connect") or (
        event == "open" and isinstance(args[1], str) and "w" in args[1]
    ):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
experiment = load_experiment(Path(sys.argv[2]))
sys.addaudithook(count)
turn_over(experiment, None, StudyLimits(finished=3))
left = 10**6
"""


def test_a_kill_at_each_step_loses_nothing(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    experiment.run("--max-finished-jobs=3")
    before = rows(experiment.root)
    killed = 0
    for instant in (2, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28, 100):
        argv = [sys.executable, "-c", _KILLED, str(instant), str(experiment.root)]
        if subprocess.run(argv, check=False).returncode == 0:
            break
        killed += 1
    assert killed > 5
    old = experiment.root / "generations" / "00000001"
    assert rows(old) == before
    assert (old / "jobs" / "00000003" / "result.json").exists()
    assert not (experiment.root / ".spearmint" / "again.json").exists()
    assert [path.name for path in old.parent.iterdir()] == ["00000001"]
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 0, done.stderr
    assert first_points(experiment.root, "") == best_points(old, "")


def test_a_generation_begins_inside_the_linear_constraints(
    make_experiment: MakeExperiment,
) -> None:
    config = ONE_FLOAT + "seed_point { param { name: 'x' dbl_val: 0.5 } }\n"
    config += "seed_point { param { name: 'x' dbl_val: 0.1 } }\n"
    experiment = make_experiment(CODE, config=config)
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    inside = ONE_FLOAT + 'require: "x <= 0.4"\n'
    (experiment.root / "config.pb").write_text(inside)
    done = experiment.run("--again", "--max-finished-jobs=2")
    assert done.returncode == 0, done.stderr
    assert "Queued 1 point.\n" in done.stdout
    assert first_points(experiment.root, "", 1) == [[0.1]]


def test_a_generation_without_a_complete_trial_ends_at_its_rungs(
    make_experiment: MakeExperiment,
) -> None:
    rungs = 'fidelity { name: "epochs" min: 1 max: 4 reduction_factor: 2 }\n'
    experiment = make_experiment(CODE, config=ONE_FLOAT + rungs)
    first = experiment.run("--max-finished-jobs=1", "--then-final")
    assert first.returncode == 1
    assert (
        "trial: not trained, because no trial is complete: raise --max-finished-jobs"
        in first.stderr
    )
    ((point,),) = (row["params"]["x"] for row in rows(experiment.root))
    done = experiment.run("--again", "--then-final", "--max-finished-jobs=1")
    assert "Generation 1 is in " in done.stdout
    assert first_points(experiment.root, "") == [[point]]
