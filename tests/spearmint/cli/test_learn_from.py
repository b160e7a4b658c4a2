"""``spearmint --learn-from``: what is used is said, and what cannot be used is an error."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

import spearmint
from spearmint.errors import InputError
from tests import commands
from tests.spearmint.conftest import ExperimentDir, MakeExperiment

OLD = """language: PYTHON
name: "trial"
variable { name: "x" type: FLOAT min: 0 max: 1 }
variable { name: "lr" type: FLOAT min: 0.0001 max: 1 log: true }
variable { name: "drop" type: FLOAT min: 0 max: 1 }
"""
NEW = """language: PYTHON
name: "trial"
variable { name: "x" type: FLOAT min: 0 max: 2 }
variable { name: "lr" type: FLOAT min: 0.00001 max: 0.1 log: true }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""
CODE = """import math
def main(job_id, params):
    return float((params["x"][0] - 0.3) ** 2 + (math.log10(params["lr"][0]) + 2) ** 2)
"""
FAST = ("--method=GPEIOptChooser", "--method-args=mcmc_iters=3,burnin=2")


@pytest.fixture
def old(make_experiment: MakeExperiment, tmp_path: Path) -> ExperimentDir:
    made = make_experiment(CODE, OLD, tmp_path / "old #1")
    with spearmint.Search(made.config, method="RandomChooser") as search:
        for _ in range(20):
            trial = search.ask()
            x, lr = (float(trial.params[name][0]) for name in ("x", "lr"))
            search.tell(trial, (x - 0.3) ** 2 + (math.log10(lr) + 2) ** 2)
    return made


@pytest.fixture
def new(make_experiment: MakeExperiment, tmp_path: Path) -> ExperimentDir:
    return make_experiment(CODE, NEW, tmp_path / "new")


def test_the_command_says_what_it_learns_and_starts_at_the_best_points(
    old: ExperimentDir, new: ExperimentDir
) -> None:
    learns = f"--learn-from={old.root}"
    done = new.run(*FAST, learns, "--max-finished-jobs=8")
    assert done.returncode == 0, done.stderr
    assert (
        f"learns from {old.root}: 20 trials, variables lr, x; "
        "not: act (not in that search), drop (not searched here)"
    ) in done.stdout
    search = spearmint.Search(new.config)
    first = search.trials[0]
    search.close()
    search = spearmint.Search(old.config)
    best = search.best
    search.close()
    assert best is not None
    assert first.params["lr"] == pytest.approx(best.params["lr"], rel=1e-9)
    again = new.run(*FAST, learns, "--max-finished-jobs=9")
    assert "learns from" in again.stdout
    without = new.run("--max-finished-jobs=10")
    assert "Earlier runs learned" in without.stdout
    assert len([1 for line in without.stdout.splitlines() if line.startswith("trial 10:")]) == 1


def test_config_pb_names_earlier_searches_and_the_command_line_adds_to_them(
    old: ExperimentDir, new: ExperimentDir, tmp_path: Path
) -> None:
    shutil.copytree(old.root, tmp_path / "other")
    new.config.write_text(NEW + 'learn_from: "../old #1"\n')
    learns = [f"learns from {old.root}: 20 trials", f"learns from {tmp_path / 'other'}: 20 trials"]
    done = new.run(*FAST, "--max-finished-jobs=1")
    assert learns[0] in done.stdout
    done = new.run(
        *FAST,
        f"--learn-from={tmp_path / 'other'}",
        f"--learn-from={tmp_path / 'other' / '..' / 'old #1'}",
        "--max-finished-jobs=2",
    )
    assert [done.stdout.count(line) for line in learns] == [1, 1]
    with spearmint.Search(new.config, learn_from=tmp_path / "other") as search:
        assert [lesson.partition(",")[0] for lesson in search.lessons] == learns
    new.config.write_text(NEW + 'learn_from: "missing"\n')
    done = new.run("--max-finished-jobs=3")
    assert done.returncode == 2
    assert f"{new.root / 'missing'}: no such file or directory" in done.stderr


def test_a_method_without_a_model_tries_the_best_points(
    old: ExperimentDir, new: ExperimentDir
) -> None:
    done = new.run(f"--learn-from={old.root}", "--max-finished-jobs=2")
    assert done.returncode == 0, done.stderr
    assert "RandomChooser has no model of other searches" in done.stdout


def test_the_best_points_are_queued_once(old: ExperimentDir, new: ExperimentDir) -> None:
    with spearmint.Search(new.config, learn_from=old.root) as search:
        assert search.lessons[0].startswith(f"learns from {old.root}: 20 trials")
        queued = len(search._study.queued_points())
        assert queued == 1
    with spearmint.Search(new.config, learn_from=[old.root]) as search:
        assert len(search._study.queued_points()) == queued
        asked = search.ask_many(4)
        assert len({trial.params["lr"][0] for trial in asked}) == 4


def test_a_search_that_has_begun_gets_models_and_no_points(
    old: ExperimentDir, new: ExperimentDir
) -> None:
    new.run("--max-finished-jobs=1")
    with spearmint.Search(new.config, learn_from=old.root) as search:
        assert not search._study.queued_points()
        assert search.lessons


def test_regions_learn_and_the_command_says_so_once(old: ExperimentDir, new: ExperimentDir) -> None:
    new.config.write_text(NEW + 'region: "us"\nregion: "de"\n')
    done = new.run(f"--learn-from={old.root}", "--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("learns from") == 1
    with spearmint.Search(new.config, region="us", learn_from=old.root) as search:
        assert not search._study.queued_points()
        assert search.lessons


def test_a_space_in_python_learns(old: ExperimentDir, tmp_path: Path) -> None:
    space = {"x": (0, 1), "lr": (1e-4, 1, "log")}
    with spearmint.Search(space, directory=tmp_path / "out", learn_from=old.root) as search:
        assert "variables lr, x; not: drop" in search.lessons[0]
        assert abs(search.ask().params["lr"] - 0.01) < 0.1


def test_what_cannot_be_used_is_an_error(
    old: ExperimentDir, new: ExperimentDir, tmp_path: Path
) -> None:
    done = new.run(f"--learn-from={tmp_path / 'missing'}")
    assert done.returncode == 2
    assert "missing: no such file or directory" in done.stderr
    assert not (new.root / "spearmint.db").exists()
    done = new.run("--learn-from=")
    assert done.returncode == 2
    assert "empty name" in done.stderr
    other = {"z": (0, 1)}
    with pytest.raises(InputError, match="several regions"):
        spearmint.Search(other, directory=tmp_path / "out", learn_from=["regions"])
    with pytest.raises(InputError, match="no variable of this search"):
        spearmint.Search(other, directory=tmp_path / "out", learn_from=old.root)
    two = {"a": "minimize", "b": "maximize"}
    with pytest.raises(InputError, match="several objectives"):
        spearmint.Search(other, directory=tmp_path / "p", objectives=two, learn_from=old.root)
    new.config.write_text(NEW + 'objective { name: "a" }\nobjective { name: "b" }\n')
    done = new.run(f"--learn-from={old.root}")
    assert done.returncode == 2
    assert "--learn-from needs one objective" in done.stderr
    new.config.write_text(new.config.read_text() + f'learn_from: "{old.root}"\n')
    done = new.run()
    assert done.returncode == 2
    assert f"learn_from of {new.config} needs one objective" in done.stderr
    assert "Remove learn_from, or" in done.stderr


def test_the_first_point_meets_the_linear_constraints(old: ExperimentDir, tmp_path: Path) -> None:
    """The best values of x are about 0.3."""
    space = {"x": (0, 1), "lr": (1e-4, 1, "log"), "z": (0, 1)}
    with spearmint.Search(
        space, directory=tmp_path / "out", require=["x <= 0.1", "x <= z"], learn_from=old.root
    ) as search:
        first = search.ask().params
        assert first["x"] <= min(0.1, first["z"]) + 1e-9


def test_branches_constraints_and_rungs_learn(old: ExperimentDir, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "config.pb").write_text(
        'language: PYTHON\nname: "trial"\n'
        'variable { name: "act" type: ENUM options: "relu" options: "tanh" }\n'
        'variable { name: "x" type: FLOAT min: 0 max: 1 }\n'
        'variable { name: "lr" type: FLOAT min: 0.0001 max: 1 log: true when: "act=relu" }\n'
        'variable { name: "drop" type: FLOAT min: 0 max: 1 }\n'
        'require: "x <= drop"\n'
        'fidelity { name: "epochs" min: 1 max: 9 reduction_factor: 3 }\n'
    )
    with spearmint.Search(
        folder / "config.pb", learn_from=old.root, method_args="mcmc_iters=3,burnin=2"
    ) as search:
        for trial in search.ask_many(7):
            params = trial.params
            assert params["x"][0] <= params["drop"][0] + 1e-9
            assert ("lr" in params) == (params["act"][0] == "relu")
            search.tell(trial, float(params["x"][0]))
        assert commands.spearmint("status", folder).returncode == 0
        assert search.ask().params


REGIONS = 'region: "a"\nregion: "b"\nregion: "c"\n'


def test_regions_learn_from_each_other(make_experiment: MakeExperiment) -> None:
    config = OLD + REGIONS + 'learn_from: "regions"\n'
    experiment = make_experiment(CODE, config)
    done = experiment.run(*FAST, "--max-finished-jobs=10")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("learns from the other regions") == 1
    status = experiment.command("status")
    assert "Learn from other searches: 3 regions, " in status.stdout
    data = json.loads(experiment.command("status", "--json").stdout)
    known = {each["region"]: each["learns_from"] for each in data["regions"]}
    assert [each["search"] for each in known["c"]] == ["a", "b"]
    assert all(each["weight"] is not None for each in known["c"])
    assert all(8 <= each["trials"] <= 10 for each in known["a"])
    with spearmint.Search(experiment.config, region="a") as search:
        assert search.lessons == ["learns from the other regions"]
        chooser = search._study._study.sampler
        assert [each.name for each in chooser.earlier] == ["b", "c"]
        search.ask()
    # A run without it says so.
    experiment.config.write_text(OLD + REGIONS)
    assert "this run does not" in experiment.run(*FAST, "--max-finished-jobs=10").stdout


def test_regions_that_do_not_exist_are_an_error_in_python(
    make_experiment: MakeExperiment, tmp_path: Path
) -> None:
    one = make_experiment(CODE, OLD + 'region: "a"\n').config
    for config, more in (({"x": (0, 1)}, {"directory": tmp_path / "s"}), (one, {"region": "a"})):
        with pytest.raises(InputError, match=r"several regions.* (1|none)\n.*\./regions"):
            spearmint.Search(config, learn_from="regions", **more)


def test_a_directory_that_is_named_regions_is_a_path(
    old: ExperimentDir, new: ExperimentDir
) -> None:
    shutil.copytree(old.root, new.root / "regions")
    learns = f"learns from {new.root / 'regions'}: 20 trials"
    with spearmint.Search(new.config, learn_from=new.root / "regions") as search:
        assert search.lessons[0].startswith(learns)
    with pytest.raises(InputError) as error:  # a path that is not there, and not the word
        spearmint.Search({"x": (0, 1)}, directory=new.root / "s", learn_from=Path("regions"))
    assert "several regions" not in str(error.value)
    new.config.write_text(NEW + 'learn_from: "./regions"\n')
    with spearmint.Search(new.config) as search:
        assert search.lessons[0].startswith(learns)
    assert "needs several regions" not in new.run("--dry-run").stderr


def test_one_region_cannot_learn_from_others(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE, OLD)
    done = experiment.run("--learn-from=regions")
    assert done.returncode == 2
    assert "needs several regions" in done.stderr
    experiment.config.write_text(OLD + REGIONS)
    done = experiment.run("--learn-from=regions", "--method=RandomChooser", "--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    assert "RandomChooser has no model of other searches: it does not learn" in done.stdout
