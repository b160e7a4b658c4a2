"""The contract for authors: its example works, and choosers that violate a rule fail its tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import spearmint.choosers.testing
from tests.spearmint.conftest import MakeExperiment

BROKEN = """
import numpy as np
import optuna
from spearmint.choosers import Chooser, RandomChooser, SequentialChooser
from spearmint.choosers.testing import ChooserContract

class Forgetful(Chooser):
    def uniform(self, number, place):
        return float(np.random.default_rng().random())

class Counting(Chooser):
    calls = 0
    def uniform(self, number, place):
        self.calls += 1
        return float(np.random.default_rng([self.seed, self.calls]).random())

class Hashing(Chooser):
    def uniform(self, number, place):
        return hash(f"{self.seed} {number} {place}") % 1000003 / 1000003

class Seedless(Chooser):
    def uniform(self, number, place):
        return float(np.random.default_rng([number, place]).random())

class Stubborn(Chooser):
    def uniform(self, number, place):
        return 0.5

class Outside(RandomChooser):
    def sample_independent(self, study, trial, name, distribution):
        value = super().sample_independent(study, trial, name, distribution)
        return float(value) if isinstance(value, int) else value

class Writing(RandomChooser):
    def sample_relative(self, study, trial, search_space):
        study.set_user_attr("asked", trial.number)
        return {}

class Minimising(RandomChooser):
    def uniform(self, number, place):
        return super().uniform(number + self.shift, place)
    def sample_relative(self, study, trial, search_space):
        done = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
        self.shift = min(done, key=lambda t: t.value).number + 1 if done else 0
        return {}

class Fragile(RandomChooser):
    def sample_relative(self, study, trial, search_space):
        done = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
        assert all(np.isfinite(t.value) for t in done)
        return {}
"""
CAUGHT_BY = {
    "Forgetful": "test_the_same_history_and_seed_give_the_same_proposal",
    "Counting": "test_a_chooser_asked_before_proposes_like_a_new_one",
    "Hashing": "test_another_process_gives_the_same_proposal",
    "Seedless": "test_another_seed_gives_another_proposal[0]",
    "Stubborn": "test_proposals_are_legal_and_distinct[0]",
    "Outside": "test_proposals_are_legal_and_distinct[0]",
    "Writing": "test_the_study_is_not_changed[0]",
    "Minimising": "test_maximising_is_minimising_the_negative[0]",
    "Fragile": "test_values_of_any_size[infinite-False]",
}


def blocks() -> list[str]:
    """Return the literal blocks of the docstring of ``spearmint.choosers.testing``."""
    text = spearmint.choosers.testing.__doc__ or ""
    found = re.findall(r"::\n\n((?:(?: {8}.*)?\n)+)", text)
    return [dedent(block) for block in found]


def run_pytest(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rf", *tests],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """Return a folder with the files of the example."""
    chooser, test, _ = blocks()
    folder = tmp_path / "authors own"
    folder.mkdir()
    (folder / "mutation.py").write_text(chooser)
    (folder / "test_mutation.py").write_text(test)
    return folder


def test_the_example_passes_its_test(example: Path) -> None:
    done = run_pytest(example)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "test_mutation.py" not in done.stdout.partition("warnings summary")[2]


def test_the_example_searches(
    example: Path, make_experiment: MakeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = blocks()[2].split()
    assert command[:2] == ["PYTHONPATH=.", "spearmint"]
    monkeypatch.syspath_prepend(str(example))
    done = make_experiment().run(*command[2:-1], "--max-finished-jobs=8")
    assert done.returncode == 0, done.stderr
    assert "mutation:MutationChooser" in done.stdout


def test_choosers_that_break_a_rule_are_caught(tmp_path: Path) -> None:
    tests = "".join(
        f"\nclass Test{name}(ChooserContract):\n    chooser = 'test_broken:{name}'\n"
        for name in CAUGHT_BY
    )
    (tmp_path / "test_broken.py").write_text(BROKEN + tests)
    nodes = [f"test_broken.py::Test{name}::{test}" for name, test in CAUGHT_BY.items()]
    done = run_pytest(tmp_path, *nodes)
    assert re.findall(r"^FAILED (.*?)(?: - .*)?$", done.stdout, re.MULTILINE) == nodes, done.stdout
