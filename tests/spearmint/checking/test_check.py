"""``spearmint check`` finds each difference, and repairs what it can."""

from __future__ import annotations

import json
import sqlite3

import pytest

from spearmint.layout import Layout, read_json, write_json
from spearmint.model import Trial, TrialState
from spearmint.requests import Inbox, Request
from spearmint.requests.inbox import Action
from spearmint.store.session import read_sessions
from spearmint.store.study import Study
from tests import commands
from tests.spearmint.conftest import ExperimentDir, MakeExperiment

FAILS_ONCE = (
    "def main(job_id, params):\n    if job_id == 1: raise ValueError('x')\n"
    "    return float(params['x'][0])\n"
)


@pytest.fixture
def searched(make_experiment: MakeExperiment) -> ExperimentDir:
    experiment = make_experiment(FAILS_ONCE)
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    return experiment


def check(experiment: ExperimentDir, *options: str) -> list[dict[str, object]]:
    done = experiment.command("check", "--json", *options)
    problems: list[dict[str, object]] = json.loads(done.stdout)["problems"]
    left = [problem for problem in problems if not problem["repaired"]]
    assert done.returncode == (1 if left else 0), done.stderr
    return problems


def repair(experiment: ExperimentDir) -> str:
    """Return the only problem, repaired; it must not be found a second time."""
    (named,) = check(experiment)
    assert check(experiment) == [named], "check without --fix changed something"
    (repaired,) = check(experiment, "--fix")
    assert repaired["what"] == named["what"]
    assert check(experiment) == []
    return str(named["what"])


def study(experiment: ExperimentDir):
    return read_sessions(experiment.root, None)[0].study


def test_a_healthy_search_has_no_problem(searched: ExperimentDir) -> None:
    assert check(searched) == []


def test_trials_that_have_ended_are_not_read(
    searched: ExperimentDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(Study, "trials", lambda self: pytest.fail("all trials were read"))
    some = Study.some

    def noted(self: Study, ids: list[int]) -> list[Trial]:
        read.extend(ids)
        return some(self, ids)

    monkeypatch.setattr(Study, "some", noted)
    assert check(searched) == []
    assert read == [1]  # broken: its result could have come late


def test_a_folder_of_no_trial_is_set_aside(searched: ExperimentDir) -> None:
    (searched.root / "jobs" / "00000099" / "files").mkdir(parents=True)
    assert "00000099" in repair(searched)
    assert (searched.root / "jobs" / "00000099.orphan" / "files").is_dir()


def test_a_result_that_came_late_is_a_new_trial(searched: ExperimentDir) -> None:
    folder = Layout(searched.root).folder(1)
    key = read_json(folder.spec)["key"]
    write_json(folder.result, {"key": key, "value": 0.125, "seconds": 3.0})
    assert "0.125" in repair(searched)
    assert study(searched).trials()[-1].value == 0.125
    assert study(searched).disregarded() == {1}


def test_a_result_that_is_not_stored_is_stored(searched: ExperimentDir) -> None:
    worst = 5 - study(searched).best()[0].id
    with sqlite3.connect(searched.root / "spearmint.db") as database:
        database.execute("UPDATE trials SET state = 'RUNNING' WHERE trial_id = ?", (worst,))
        database.execute("DELETE FROM trial_values WHERE trial_id = ?", (worst,))
    database.close()
    assert f"trial {worst}" in repair(searched)
    assert study(searched).find(worst).state is TrialState.COMPLETE


def test_the_record_of_the_best_trial_is_written_again(searched: ExperimentDir) -> None:
    best = searched.root / "best_job_and_result.txt"
    text = best.read_text()
    best.write_text(text[:10])
    assert best.name in repair(searched)
    assert best.read_text() == text


def test_requests_that_nobody_applied_are_applied(searched: ExperimentDir) -> None:
    Inbox(Layout(searched.root)).put(Request(action=Action.ADD, points=({"x": 0.25},)))
    assert "1 request" in repair(searched)
    assert study(searched).queued_points() == [{"x": 0.25}]


def test_a_damaged_database_is_named_and_left_alone(searched: ExperimentDir) -> None:
    database = searched.root / "spearmint.db"
    content = database.read_bytes()
    database.write_bytes(content[: len(content) // 2])
    for end in ("wal", "shm"):
        database.with_name(f"spearmint.db-{end}").unlink(missing_ok=True)
    (problem,) = check(searched, "--fix")
    assert str(database) in str(problem["what"])
    assert not problem["repaired"]


def test_a_directory_without_a_search_is_wrong_input(tmp_path) -> None:
    (tmp_path / "config.pb").write_text(
        'language: PYTHON\nname: "t"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    )
    for options in ((), ("--fix",)):
        assert commands.spearmint("check", *options, tmp_path).returncode == 2
    assert not (tmp_path / "spearmint.db").exists()
