"""Choosers and pruners of other packages: by ``package.module:Class`` and by entry points."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest

from spearmint.choosers import chooser_class, chooser_names, make_chooser, make_pruner, pruner_names
from spearmint.errors import InputError
from tests.spearmint.conftest import MakeExperiment

MODULE = '''
from typing import Optional

import optuna
from spearmint.choosers import Chooser


class Corner(Chooser):
    """Proposes one point of the cube, whatever the trials."""

    def __init__(self, place: float = 0.25, note=3, *, power: Optional[int] = None, seed=None):
        super().__init__(seed=seed)
        self.place, self.note, self.power = place, note, power

    def uniform(self, number, place):
        return self.place


class Theirs(optuna.samplers.RandomSampler):
    pass


class Unfinished(optuna.samplers.BaseSampler):
    pass


class Needs(Chooser):
    def __init__(self, start: float, table: dict, *, seed=None):
        super().__init__(seed=seed)


class Late(Chooser):
    def __init__(self, *, seed=None):
        import a_library_that_is_not_there


class Stubborn(optuna.pruners.BasePruner):
    def __init__(self, first: int = 1):
        self.first = first

    def prune(self, study, trial):
        return trial.last_step >= self.first


def corner():
    return Corner()
'''


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with a chooser and a pruner, for this process and its child processes."""
    site = tmp_path / "site packages"
    info = site / "corners-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: corners\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[spearmint.choosers]\nCornerChooser = corners_plugin:Corner\n"
        "broken = corners_plugin:Nothing\nTPESampler = corners_plugin:Corner\n"
        "[spearmint.pruners]\nStubbornPruner = corners_plugin:Stubborn\n"
    )
    (site / "corners_plugin.py").write_text(MODULE)
    (site / "fails_plugin.py").write_text("raise RuntimeError('no licence')")
    (site / "lacks_plugin.py").write_text("import a_library_that_is_not_there")
    (site / "typo_plugin.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    yield site
    sys.modules.pop("corners_plugin", None)


def test_a_chooser_by_its_class() -> None:
    args = {"place": "0.5", "note": "7", "power": "2"}
    chooser = make_chooser("corners_plugin:Corner", args, seed=2**40)
    assert type(chooser) is chooser_class("corners_plugin:Corner")
    assert (chooser.place, chooser.note, chooser.power) == (0.5, 7, 2)
    assert chooser.seed == 2**40
    study = optuna.create_study(sampler=chooser)
    assert study.ask({"x": optuna.distributions.FloatDistribution(0.0, 2.0)}).params == {"x": 1.0}


def test_a_sampler_of_optuna_gets_a_seed_of_32_bits() -> None:
    make_chooser("corners_plugin:Theirs", {}, seed=2**40)


@pytest.mark.parametrize("name", ["CornerChooser", "cornerchooser", "corner"])
def test_a_chooser_by_its_entry_point(name: str) -> None:
    assert chooser_class(name).__name__ == "Corner"


def test_entry_points_are_listed_after_ours_and_optunas_which_they_cannot_replace() -> None:
    names = chooser_names()
    assert names[-2:] == ["CornerChooser", "broken"]
    assert chooser_class("TPESampler") is optuna.samplers.TPESampler
    with pytest.raises(InputError) as caught:
        make_chooser("CornreChooser", {}, seed=0)
    assert "'CornerChooser'?" in caught.value.fix
    assert "package.module:Class" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("nowhere.at_all:Corner", {}, ["'nowhere'", "nowhere.at_all:Corner", "PYTHONPATH"]),
        ("email.nowhere:Corner", {}, ["'email.nowhere'", "PYTHONPATH"]),
        ("corners_plugin:Cornre", {}, ["corners_plugin ", "'Cornre'", "'Corner'?"]),
        ("broken", {}, ["corners_plugin ", "'Nothing'"]),
        ("fails_plugin:X", {}, ["module fails_plugin", "RuntimeError: no licence"]),
        ("lacks_plugin:X", {}, ["module lacks_plugin", "a_library_that_is_not_there"]),
        ("typo_plugin:X", {}, ["module typo_plugin", "SyntaxError", "line 1"]),
        ("corners_plugin:corner", {}, ["corners_plugin:corner", "spearmint.choosers.Chooser"]),
        ("corners_plugin:Stubborn", {}, ["corners_plugin:Stubborn", "spearmint.choosers.Chooser"]),
        ("corners_plugin:Unfinished", {}, ["corners_plugin:Unfinished", "sample_relative"]),
        ("corners_plugin:", {}, ["'corners_plugin:'", "package.module:Class"]),
        ("my file.py:X", {}, ["'my file.py:X'", "package.module:Class"]),
        ("corners_plugin:Corner", {"size": "1"}, ["argument size", "place, note, power"]),
        ("corners_plugin:Corner", {"place": "far"}, ["place 'far'", "number"]),
        ("corners_plugin:Corner", {"note": "x"}, ["note 'x'", "integer"]),
        ("corners_plugin:Needs", {}, ["argument start, table", "table:"]),
        ("corners_plugin:Late", {}, ["corners_plugin:Late", "a_library_that_is_not_there"]),
    ],
)
def test_what_is_wrong_with_a_class_is_said(name: str, args: dict[str, str], words) -> None:
    with pytest.raises(InputError) as caught:
        make_chooser(name, args, seed=0)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["corners_plugin:Stubborn", "stubborn", "StubbornPruner"])
def test_a_pruner_by_its_class_and_by_its_entry_point(name: str) -> None:
    assert vars(make_pruner(name, {"first": "4"})) == {"first": 4}


def test_a_wrong_pruner_class_and_the_names_of_all() -> None:
    with pytest.raises(InputError, match="corners_plugin:Corner") as error:
        make_pruner("corners_plugin:Corner", {})
    assert "optuna.pruners.BasePruner" in error.value.fix
    assert pruner_names()[-1] == "StubbornPruner"
    with pytest.raises(InputError, match=r"StubbornPruner; .*package\.module:Class"):
        make_pruner("nothing", {})


@pytest.mark.parametrize("name", ["corners_plugin:Corner", "corner"])
def test_the_command_searches_and_resumes_with_it(make_experiment: MakeExperiment, name) -> None:
    experiment = make_experiment()
    for total in (1, 3):
        options = [f"--method={name}", "--method-args=place=0.75", f"--max-finished-jobs={total}"]
        done = subprocess.run(
            experiment.argv(*options), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    rows = json.loads(experiment.command("export", "--json").stdout)
    assert [row["params"]["x"] for row in rows] == [[0.75]] * 3


def test_the_command_prunes_by_it(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(
        "import spearmint, time\n"
        "def main(job_id, params):\n"
        "    for step in range(1, 600):\n"
        "        spearmint.report(step, 1.0)\n"
        "        time.sleep(0.1)\n"
    )
    done = experiment.run("--pruner=corners_plugin:Stubborn", "--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(experiment.command("export", "--json").stdout)
    assert row["state"] == "pruned"


def test_the_help_lists_entry_points(make_experiment: MakeExperiment) -> None:
    done = make_experiment().run("--help")
    text = " ".join(done.stdout.split())
    assert "CornerChooser, TPESampler, broken" in text
    assert "StubbornPruner" in text


def test_the_command_refuses_a_class_that_is_none(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    done = experiment.run("--method=corners_plugin:corner")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: corners_plugin:corner ")
    assert "spearmint.choosers.Chooser" in done.stderr
    assert not (experiment.root / "spearmint.db").exists()
