"""``status`` and the report say what a search learns, and that it looks elsewhere."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import spearmint
from spearmint.store.strategy import REPEATS, RESTART
from tests import commands

FAST = "mcmc_iters=3,burnin=2"
SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def bowl(a: float, b: float) -> float:
    well = math.exp(-((a - 0.85) ** 2 + (b - 0.8) ** 2) / 0.01)
    return (a - 0.3) ** 2 + (b - 0.35) ** 2 - 0.6 * well


def searched(folder: Path, trials: int, batch: int = 1, **arguments: object) -> spearmint.Search:
    search = spearmint.Search(SPACE, directory=folder, method_args=FAST, **arguments)
    for _ in range(trials // batch):
        for trial in search.ask_many(batch) if batch > 1 else [search.ask()]:
            search.tell(trial, bowl(*trial.params.values()))
    return search


def status(folder: Path) -> tuple[str, dict[str, object]]:
    texts = [commands.spearmint("status", *flags, folder).stdout for flags in ([], ["--json"])]
    return texts[0], json.loads(texts[1])


@pytest.mark.parametrize("batch", [1, 4])
def test_status_and_the_report_count_the_trials_that_look_elsewhere(
    tmp_path: Path, batch: int
) -> None:
    with searched(tmp_path, 48, batch) as search:
        search.ask()
        marked = [t for t in search._study._frozen() if RESTART in t.user_attrs]
    assert marked
    text, data = status(tmp_path)
    since, restarts = marked[0].number + 1, max(t.user_attrs[RESTART] for t in marked)
    assert data["elsewhere"] == {
        "since_trial": since,
        "trials": len(marked),
        "restarts": restarts,
    }
    line = f"looks elsewhere since trial {since}, {len(marked)} trial"
    assert line in text
    assert all(t.number % 2 for t in marked[:1])
    assert commands.spearmint("report", tmp_path).returncode == 0
    assert line in (tmp_path / "report" / "index.html").read_text()
    with searched(tmp_path, 0) as search:  # queued points do not count
        search._study.enqueue({"a": 0.5, "b": 0.5})
        search._study.enqueue({"a": 0.5, "b": 0.25})
        assert {search.ask().params["b"] for _ in range(2)} == {0.5, 0.25}
        found = search._study.elsewhere()
    assert found is not None
    assert found.trials == len(marked)


def test_a_search_that_never_looked_elsewhere_says_nothing(tmp_path: Path) -> None:
    searched(tmp_path, 6).close()
    text, data = status(tmp_path)
    assert "elsewhere" not in text
    assert not {"elsewhere", "learns_from"} & data.keys()


def test_status_shows_the_weight_of_each_earlier_search(tmp_path: Path) -> None:
    searched(tmp_path / "same", 16).close()
    with spearmint.Search(SPACE, directory=tmp_path / "other", method="RandomChooser") as other:
        for _ in range(16):
            trial = other.ask()
            other.tell(trial, -bowl(*trial.params.values()))
    sources = [str(tmp_path / "same"), str(tmp_path / "other")]
    new = tmp_path / "new"
    searched(new, 0, learn_from=sources).close()
    text, data = status(new)
    assert f"Learns from 2 searches: {sources[0]} (no weight yet)" in text
    searched(new, 8, learn_from=sources).close()
    text, data = status(new)
    weights = {each["search"]: each["weight"] for each in data["learns_from"]}
    assert weights[sources[0]] > 0.2
    assert weights[sources[1]] == 0
    assert f"{sources[0]} (weight {weights[sources[0]]:g}), {sources[1]} (weight 0)" in text
    searched(new, 0, learn_from=sources).close()  # a resumed search keeps the weights
    assert status(new)[1] == data
    searched(new, 0).close()
    assert "learns_from" not in status(new)[1]


def test_a_chooser_without_a_model_tries_first_points_only(tmp_path: Path) -> None:
    searched(tmp_path / "same", 8).close()
    with spearmint.Search(
        SPACE, directory=tmp_path / "new", method="RandomChooser", learn_from=tmp_path / "same"
    ) as search:
        search.ask()
    text, data = status(tmp_path / "new")
    assert f"{tmp_path / 'same'} (first points only)" in text
    (lesson,) = data["learns_from"]
    assert (lesson["weight"], lesson["trials"]) == (None, 8)


def test_a_method_without_a_model_learns_nothing_from_the_last_generation(tmp_path: Path) -> None:
    searched(tmp_path / "generations" / "1", 6).close()
    last = tmp_path / "generations"
    with spearmint.Search(
        SPACE, directory=tmp_path, method="RandomChooser", learn_from=last
    ) as search:
        search.ask()
        found, _ = search.lessons
    assert found.startswith(f"does not learn from {last / '1'}: 6 trials")
    text, data = status(tmp_path)
    assert "Learns from" not in text
    assert "learns_from" not in data


LEVELS = {"depth": range(1, 7), "rule": ["gini", "entropy"]}


@pytest.mark.parametrize("batch", [1, 4])
def test_status_and_the_report_count_the_repetitions_of_a_noisy_search(
    tmp_path: Path, batch: int
) -> None:
    rng = np.random.default_rng(0)
    with spearmint.Search(LEVELS, directory=tmp_path, method_args=FAST) as search:
        for _ in range(24 // batch):
            for trial in search.ask_many(batch) if batch > 1 else [search.ask()]:
                loss = 0.05 * (trial.params["depth"] - 4) ** 2 + 0.2 * rng.standard_normal()
                search.tell(trial, loss)
        marked = [t.number for t in search._study._frozen() if REPEATS in t.user_attrs]
        points = [tuple(trial.params.values()) for trial in search.trials]
    assert marked
    assert all(points[number] in points[:number] for number in marked)
    text, data = status(tmp_path)
    assert data["replicates"] == {"since_trial": marked[0] + 1, "trials": len(marked)}
    trials = "1 trial repeats" if len(marked) == 1 else f"{len(marked)} trials repeat"
    line = f"{trials} good points since trial {marked[0] + 1}"
    assert line in text
    best = commands.spearmint("best", "--json", tmp_path)
    assert json.loads(best.stdout)["model"]["trials"] >= 1
    assert commands.spearmint("report", tmp_path).returncode == 0
    assert line in (tmp_path / "report" / "index.html").read_text()


def test_a_queued_point_is_not_counted_as_a_repetition(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with spearmint.Search(LEVELS, directory=tmp_path, method_args=FAST) as search:
        for _ in range(17):
            trial = search.ask()
            search.tell(trial, float(trial.params["depth"] + rng.standard_normal()))
        before = search._study.repetitions()
        search._study.enqueue({"depth": 2, "rule": "gini"}, repeat=True)
        search.ask()
        assert search._study.repetitions() == before


def test_points_that_a_batch_repeats_twice_count_twice(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with spearmint.Search(LEVELS, directory=tmp_path, method_args=FAST, seed=1) as search:
        for count in (12, 8):
            for trial in search.ask_many(count):
                search.tell(trial, float(abs(trial.params["depth"] - 4) + rng.standard_normal()))
        batch = [tuple(trial.params.values()) for trial in search.ask_many(8)]
        marked = [t.number for t in search._study._frozen() if REPEATS in t.user_attrs]
    assert len(set(batch)) < len(batch)
    assert marked[-8:] == list(range(20, 28)), "each point was tried before"
