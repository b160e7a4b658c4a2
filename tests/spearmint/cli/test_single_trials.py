"""``show``, ``add``, ``retry``, ``stop``, ``note`` and ``tag``, with and without a controller."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from spearmint.layout import read_json
from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment
from tests.waiting import is_running, text_of, until

KILLS = int(os.environ.get("KILLS", "10"))
CODE = """
import os, time
from spearmint import report

def main(job_id, params):
    x = float(params["x"][0])
    print("this is", job_id)
    for step in range(3):
        report(step, 1.0 / (step + 1))
    if x == 0.5:
        raise MemoryError("out of memory")
    if x == 0.95:
        time.sleep(600)
    with open("evaluated.txt", "a") as file:
        file.write(f"{x}\\n")
    return x
"""


def rows(experiment: ExperimentDir) -> list[dict]:
    return json.loads(experiment.command("export", "--json").stdout)


def call(experiment: ExperimentDir, command: str, *words: str) -> subprocess.CompletedProcess[str]:
    return commands.spearmint(command, experiment.root, *words)


def page(experiment: ExperimentDir, *words: str) -> dict:
    done = call(experiment, "show", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kill(controller: subprocess.Popen[str]) -> None:
    controller.kill()
    controller.wait()
    controller.stdout.close()


def with_controller(experiment: ExperimentDir) -> Iterator[subprocess.Popen[str]]:
    controller = experiment.start("--max-finished-jobs=1000", "--max-concurrent=1")
    yield controller
    kill(controller)
    experiment.run("--cancel")


@pytest.fixture
def stuck(make_experiment: MakeExperiment) -> Iterator[tuple[ExperimentDir, subprocess.Popen[str]]]:
    """Yield an experiment whose controller runs trial 1, which does not end."""
    experiment = make_experiment(CODE)
    assert call(experiment, "add", "x=0.95").returncode == 0
    for controller in with_controller(experiment):
        until(lambda: (experiment.root / "jobs/00000001/reports.csv").exists(), 120)
        yield experiment, controller


def test_points_added_before_the_first_run_are_its_first_trials(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE)
    done = call(experiment, "add", "--json", "x={0.125,0.25}")
    assert json.loads(done.stdout)["points"] == [{"x": 0.125}, {"x": 0.25}]
    assert json.loads(call(experiment, "status", "--json").stdout)["queued_points"] == [
        {"x": 0.125},
        {"x": 0.25},
    ]
    assert "x=0.25" in call(experiment, "status").stdout
    assert experiment.run("--max-finished-jobs=3").returncode == 0
    assert [row["params"]["x"] for row in rows(experiment)][:2] == [[0.125], [0.25]]
    assert "next" not in call(experiment, "status").stdout


def test_points_reach_a_running_search_at_its_next_free_place(stuck) -> None:
    experiment, controller = stuck
    done = call(experiment, "add", "x=0.125")
    assert (done.returncode, done.stderr) == (0, "")
    assert not list((experiment.root / ".spearmint" / "requests").iterdir())
    done = call(experiment, "stop", "1", "--reason", "too\nslow", "--json")
    (stopped,) = json.loads(done.stdout)["trials"]
    assert stopped["state"] == "broken"
    assert stopped["reason"].endswith(": too slow")
    until(lambda: any(row["value"] == 0.125 for row in rows(experiment)), 60)
    assert controller.poll() is None
    second = rows(experiment)[1]
    assert (second["params"]["x"], second["lost"]) == ([0.125], 0)


def test_a_trial_without_a_controller_is_stopped_directly(stuck) -> None:
    experiment, controller = stuck
    runner = json.loads((experiment.root / "jobs/00000001/runner.json").read_text())["pid"]
    controller.kill()
    controller.wait()
    assert is_running(runner)
    done = call(experiment, "stop", "1")
    assert done.returncode == 0, done.stderr
    assert rows(experiment)[0]["state"] == "broken"
    until(lambda: not is_running(runner))
    assert call(experiment, "stop", "1").returncode == 2


def test_a_retry_runs_the_point_of_a_broken_trial(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    call(experiment, "add", "x={0.5,0.25}")
    assert experiment.run("--max-finished-jobs=1").returncode == 0
    assert call(experiment, "retry", "2").returncode == 2, "a complete trial is not retried"
    assert call(experiment, "retry", "3").returncode == 2, "there is no such trial"
    assert call(experiment, "retry").returncode == 2
    none = call(experiment, "retry", "--broken", "--reason", "other", "--json")
    assert json.loads(none.stdout)["trials"] == []
    done = call(experiment, "retry", "--broken", "--reason", "out of memory", "--json")
    assert json.loads(done.stdout) == {"trials": [1], "applied": True}
    wrapper = experiment.root / "trial.py"
    wrapper.write_text(CODE.replace("x == 0.5", "False"))
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    assert [(row["params"]["x"], row["state"]) for row in rows(experiment)] == [
        ([0.5], "broken"),
        ([0.25], "complete"),
        ([0.5], "complete"),
    ]


def test_show_has_each_job_of_a_trial_its_output_and_curve(stuck) -> None:
    experiment, _ = stuck
    runner = experiment.root / "jobs/00000001/runner.json"
    first = json.loads(runner.read_text())["pid"]
    os.kill(first, signal.SIGKILL)
    # Between two jobs there is no such file.
    until(lambda: (read_json(runner) or {}).get("pid", first) != first, 120)
    reports = experiment.root / "jobs/00000001/reports.csv"
    until(lambda: text_of(reports).count("\n") == 3, 120)
    shown = page(experiment, "1")
    lost, running = shown["attempts"]
    assert lost["pid"] == first
    assert "SIGKILL" in lost["reason"]
    assert running["seconds"] > 0
    assert running["host"] == os.uname().nodename
    assert shown["curve"] == {"0": 1.0, "1": 0.5, "2": 1 / 3}
    assert "this is 1" in shown["tail"]
    assert Path(shown["log"]).is_file()
    text = call(experiment, "show", "1").stdout
    for part in ("trial 1: running", "Job 1:", "Job 2:", "Curve:", "this is 1", "x: 0.95"):
        assert part in text


def test_notes_and_tags_are_shown_and_exported(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    call(experiment, "add", "x={0.5,0.25}")
    experiment.run("--max-finished-jobs=1")
    assert call(experiment, "note", "1", "needs 8 GiB").returncode == 0
    assert call(experiment, "note", "1", "not today").returncode == 0
    assert call(experiment, "tag", "2", "good", "paper").returncode == 0
    call(experiment, "tag", "2", "paper", "--remove")
    first, second = rows(experiment)
    assert first["notes"] == ["needs 8 GiB", "not today"]
    assert second["tags"] == ["good"]
    cells = list(csv.DictReader(io.StringIO(experiment.command("export").stdout)))
    assert (cells[0]["notes"], cells[1]["tags"]) == ("needs 8 GiB; not today", "good")
    status = experiment.command("status").stdout
    assert "needs 8 GiB" in status
    assert "good" in status
    call(experiment, "note", "1", "--delete")
    assert page(experiment, "1")["notes"] == []
    for words in (("tag", "2", "a b"), ("tag", "9", "a"), ("note", "9", "a"), ("note", "x")):
        assert call(experiment, *words).returncode == 2, words


def test_the_directory_can_be_left_out(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    for words in (("add", "x=0.25"), ("show", "1"), ("tag", "1", "good"), ("check",)):
        done = commands.spearmint(*words, cwd=experiment.root)
        assert done.returncode == 0, done.stderr
        if words[0] == "add":
            experiment.run("--max-finished-jobs=1")


def test_trials_of_a_region_need_its_name(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE, config=ONE_FLOAT + 'region: "de"\nregion: "us"\n')
    assert call(experiment, "add", "x=0.25").returncode == 0
    assert call(experiment, "add", "x=0.125", "--region", "us").returncode == 0
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    done = call(experiment, "show", "1")
    assert done.returncode == 2
    assert "de, us" in done.stderr
    assert page(experiment, "2", "--region", "us")["params"]["x"] == [0.125]
    assert page(experiment, "1", "--region", "de")["params"]["x"] == [0.25]


@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * KILLS)
def test_each_added_point_is_evaluated_once_by_killed_processes(
    make_experiment: MakeExperiment,
) -> None:
    """Both the command and the controller are killed at random moments."""
    experiment = make_experiment(CODE)
    dice = random.Random(3)
    options = ("--max-finished-jobs=100000", "--max-retries=1000", "--polling-time=0.2")
    promised, offered = set(), set()
    controller = experiment.start(*options)
    began = time.monotonic()
    until(lambda: (experiment.root / "evaluated.txt").exists(), 120)
    longest_s = max(2.0, time.monotonic() - began)
    for n in range(KILLS):
        values = [(1 + 2 * n) / 1024, (2 + 2 * n) / 1024]
        offered.update(values)
        words = ["add", str(experiment.root), *(f"x={value}" for value in values)]
        command = subprocess.Popen(
            [sys.executable, "-m", "spearmint", *words], stdout=subprocess.DEVNULL
        )
        time.sleep(dice.uniform(0.0, longest_s))
        if dice.random() < 0.5:
            command.kill()
        if dice.random() < 0.5:
            kill(controller)
            controller = experiment.start(*options)
        if command.wait() == 0:
            promised.update(values)
    kill(controller)
    assert call(experiment, "check", "--fix").returncode == 0
    finished = sum(row["state"] == "complete" for row in rows(experiment))
    assert experiment.run(f"--max-finished-jobs={finished + 2 * KILLS + 2}").returncode == 0
    counted = Counter(row["params"]["x"][0] for row in rows(experiment))
    assert all(counted[value] == 1 for value in promised)
    assert all(counted[value] in (0, 1) for value in offered)
    pairs = [((1 + 2 * n) / 1024, (2 + 2 * n) / 1024) for n in range(KILLS)]
    assert all(counted[a] == counted[b] for a, b in pairs), "half of a request was applied"
