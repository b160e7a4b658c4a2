"""A study of a search in which some variables are only active where others have certain values."""

from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.choosers import GPEIOptChooser
from spearmint.errors import StudyMismatch
from spearmint.model import Result, TrialState
from spearmint.store.study import Study
from tests.spearmint.store.studies import opened, stored

CONFIG = """language: PYTHON
name: "mine"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 when: "model=svm" }
variable { name: "model" type: ENUM options: "svm" options: "net" options: "none" }
variable { name: "layers" type: INT min: 1 max: 3 when: "model=net" }
variable { name: "w" type: FLOAT min: 0 max: 1 when: "layers=2|3" }
seed_point { param { name: "model" str_val: "net" } param { name: "layers" int_val: 3 } }
"""


@pytest.fixture
def branched(tmp_path: Path, url: str) -> Study:
    return opened(tmp_path, url, CONFIG)


def test_only_active_parameters_are_stored(branched: Study, url: str) -> None:
    branched.enqueue_seed_points()
    asked = [branched.ask() for _ in range(3)]
    asked += branched.ask_many(4)
    assert asked[0].params["layers"] == (3,)
    assert list(asked[0].params) == ["model", "layers", "w"]
    found = stored(url)
    assert len(found) == 7
    for trial, kept in zip(asked, found, strict=True):
        elements = [len(values) for values in trial.params.values()]
        assert len(kept.params) == sum(elements)
        assert kept.params["model"] == trial.params["model"][0]
        assert ("X[0]" in kept.params) == (trial.params["model"] == ("svm",))
        assert ("w" in kept.params) == (trial.params.get("layers", (1,))[0] > 1)
    assert branched.running() == asked
    assert branched.find(1) == asked[0]


def test_a_proposal_that_a_kill_cut_off_is_not_a_trial(branched: Study, url: str) -> None:
    whole = [branched.ask() for _ in range(3)]
    branched.enqueue({"model": "net", "layers": 2})
    half = branched._study.ask()
    known = branched._distributions
    half._suggest("model", known["model"])
    half._suggest("layers", known["layers"])  # "w" is missing
    assert branched.counts()[TrialState.RUNNING] == 3
    assert branched.running() == whole
    assert branched.find(4) is None
    for trial in whole:
        branched.complete(trial, Result(value=float(trial.id)))
    states = [trial.state for trial in branched.trials()]
    assert branched.counts() == {state: states.count(state) for state in TrialState}
    assert [trial.id for trial in branched.best(9)] == [1, 2, 3]
    branched.abandon_unproposed()
    assert branched.queued_points() == [{"model": "net", "layers": 2}]
    assert branched.ask().params["layers"] == (2,)


def test_points_of_elsewhere_have_only_active_variables(branched: Study, url: str) -> None:
    branched.add_complete({"model": ("none",)}, 0.5, source="file")
    branched.add_complete({"model": ("net",), "layers": (1,)}, 0.25, source="file")
    assert [trial.params for trial in branched.trials()] == [
        {"model": ("none",)},
        {"model": ("net",), "layers": (1,)},
    ]
    assert branched.best()[0].id == 2
    assert branched.counts()[TrialState.COMPLETE] == 2


def test_another_condition_is_another_search(branched: Study, tmp_path: Path, url: str) -> None:
    branched.ask()
    with pytest.raises(StudyMismatch, match=r"model=net\|none"):
        opened(tmp_path, url, CONFIG.replace('when: "model=net"', 'when: "model=net|none"'))


def test_only_a_search_with_conditions_has_a_tree(branched: Study, tmp_path: Path) -> None:
    chooser = GPEIOptChooser(seed=1)
    branched.use(chooser)
    assert chooser.tree is not None
    opened(tmp_path, f"sqlite:///{tmp_path}/other.db").use(chooser)
    assert chooser.tree is None


def test_a_guess_that_is_removed_or_tried_queues_nothing(tmp_path: Path, url: str) -> None:
    both = 'language: PYTHON name: "net"\n' + "".join(
        f'variable {{ name: "{name}" type: FLOAT min: 0 max: 1 guess: 0.25 }}\n' for name in "ab"
    )
    study = opened(tmp_path, url, both)
    study.enqueue_seed_points()
    assert study.queued_points() == [{"a": 0.25, "b": 0.25}]
    study.ask()
    one = opened(tmp_path, url, both.replace("guess: 0.25", "", 1))
    one.enqueue_seed_points()
    assert not one.queued_points()
    other = opened(tmp_path, url, both.replace("guess: 0.25", "guess: 0.5", 1))
    other.enqueue_seed_points()
    assert other.queued_points() == [{"a": 0.5, "b": 0.25}]


def test_guesses_are_the_first_points_one_for_each_branch(tmp_path: Path, url: str) -> None:
    config = CONFIG.replace("seed_point", "# seed_point").replace("min: 0", "guess: 0.25 min: 0")
    config = config.replace("min: 1 max: 3", "min: 1 max: 3 guess: 1")
    study = opened(tmp_path, url, config)
    chooser = GPEIOptChooser(seed=1)
    study.use(chooser)
    assert chooser.guesses == dict.fromkeys(("X[0]", "X[1]", "w"), (0.25, 0.2)) | {
        "layers": (1.0, 0.2)
    }
    for _ in range(2):  # the second time for a search that continues
        study.enqueue_seed_points()
        assert study.queued_points() == [
            {"X[0]": 0.25, "X[1]": 0.25, "model": "svm"},
            {"model": "net", "layers": 1},
            {"model": "net", "layers": 2, "w": 0.25},
        ]
    assert study.ask().params == {"X": (0.25, 0.25), "model": ("svm",)}
    study.enqueue_seed_points()
    assert len(study.queued_points()) == 2
