"""kill -9 of controller, runners or both at random moments: no finished trial is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from spearmint.trial.environment import TRIAL_DIR
from tests.spearmint.conftest import ExperimentDir, MakeExperiment
from tests.waiting import until

FORKED = "spearmint.trial.warm.process"
KILLS = int(os.environ.get("KILLS", "10"))
CODE = """
import fcntl
import time

def main(job_id, params):
    running = open(f"running-{job_id}", "w")
    fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if it already runs
    time.sleep(0.05)
    with open("evaluated.txt", "a") as file:
        file.write(f"{job_id}\\n")
    return float(params["x"][0])
"""
# It ends when the file "go" exists.
HELD = CODE.replace("import time", "import os, time").replace(
    "    time.sleep(0.05)", "    while not os.path.exists('go'):\n        time.sleep(0.05)"
)
OPTIONS = ("--max-concurrent=3", "--max-finished-jobs=100000", "--max-retries=1000")


def runners(experiment: ExperimentDir) -> list[psutil.Process]:
    """Return the processes of trials: with their environment, or forked with their lock file."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            started = process.environ().get(TRIAL_DIR, "").startswith(str(experiment.root))
            if started or (FORKED in process.cmdline() and holds_a_trial(process, experiment)):
                found.append(process)
    return found


def holds_a_trial(process: psutil.Process, experiment: ExperimentDir) -> bool:
    links = [str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
    return any(link.startswith(f"{experiment.root.resolve()}/jobs/") for link in links)


def finished(experiment: ExperimentDir) -> dict[int, float]:
    """Return the values of the finished trials, by their result files."""
    values = {}
    for path in experiment.root.glob("jobs/*/result.json"):
        result = json.loads(path.read_text())
        values[int(path.parent.name)] = result["value"]
    return values


def evaluations(experiment: ExperimentDir) -> Counter[int]:
    """Return how often each trial reached its end."""
    path = experiment.root / "evaluated.txt"
    return Counter(map(int, path.read_text().split())) if path.exists() else Counter()


def kill(victim: str, controller: subprocess.Popen[str], experiment: ExperimentDir) -> None:
    targets = [process.pid for process in runners(experiment)] if victim != "controller" else []
    if victim != "runners":
        targets.insert(0, controller.pid)
    for pid in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if victim != "runners":
        controller.wait()


def said_until(text: str, controller: subprocess.Popen[str]) -> str:
    """Return what a controller prints until the line with ``text``."""
    assert controller.stdout is not None
    said = ""
    for line in controller.stdout:
        said += line
        if text in line:
            return said
    pytest.fail(f"it ended without {text}:\n{said}")


@pytest.mark.slow
@pytest.mark.timeout(600 + 20 * KILLS)
def test_no_finished_trial_is_lost_by_kills(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    dice = random.Random(2)
    known: dict[int, float] = {}
    done_at: dict[int, int] = {}
    began = time.monotonic()
    controller = experiment.start(*OPTIONS)
    until(lambda: finished(experiment), 120)
    longest_s = max(2.0, time.monotonic() - began)
    kills = 0
    while kills < KILLS or len(known) <= KILLS / 2:  # otherwise too few trials ran
        kills += 1
        if controller.poll() is not None:
            controller.stdout.close()
            controller = experiment.start(*OPTIONS)
        time.sleep(dice.uniform(0.0, longest_s))
        assert controller.poll() is None, controller.stdout.read()
        kill(dice.choice(["controller", "runners", "both"]), controller, experiment)
        now = finished(experiment)
        assert now.items() >= known.items(), "a finished trial is missing or has another value"
        for trial_id in now.keys() - known.keys():
            done_at[trial_id] = evaluations(experiment)[trial_id]
        known = now
    if controller.poll() is None:
        kill("controller", controller, experiment)
    controller.stdout.close()
    goal = len(known) + 10
    done = experiment.run("--max-concurrent=3", f"--max-finished-jobs={goal}")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(experiment.command("export", "--json").stdout)
    stored = {row["id"]: row["value"] for row in rows if row["state"] == "complete"}
    assert stored.items() >= known.items()
    assert len(stored) == goal
    assert {row["state"] for row in rows} == {"complete"}
    assert {i: evaluations(experiment)[i] for i in done_at} == done_at, "a trial was rerun"
    assert not runners(experiment)


def test_a_resumed_search_adopts_what_runs(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE.replace("0.05", "2.0"))
    controller = experiment.start("--max-finished-jobs=1")
    until(lambda: runners(experiment))
    kill("controller", controller, experiment)
    controller.stdout.close()
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 0
    assert (experiment.root / "evaluated.txt").read_text() == "1\n", "it ran more than once"


def test_another_spelling_of_the_directory_adopts_too(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE.replace("0.05", "3.0"))
    controller = experiment.start("--max-finished-jobs=1")
    until(lambda: runners(experiment))
    kill("controller", controller, experiment)
    controller.stdout.close()
    link = experiment.root.parent / "link"
    link.symlink_to(experiment.root)
    experiment.config = link / ".." / link.name / "config.pb"
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    assert (experiment.root / "evaluated.txt").read_text() == "1\n", "it ran more than once"


def test_cleanup_ends_what_a_killed_controller_left(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE.replace("0.05", "600"))
    controller = experiment.start("--max-finished-jobs=1")
    until(lambda: runners(experiment))
    kill("controller", controller, experiment)
    controller.stdout.close()
    assert experiment.command("cleanup").returncode == 0
    assert not runners(experiment)


def test_ctrl_c_once_waits_for_the_running_trial(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(HELD)
    controller = experiment.start("--max-finished-jobs=5")
    until(lambda: runners(experiment))
    controller.send_signal(signal.SIGINT)
    output = said_until("Ctrl-C", controller)
    (experiment.root / "go").touch()
    output += controller.communicate()[0]
    assert controller.returncode == 130
    assert re.search(r"\b1\. .*Ctrl-C", output)
    assert re.search(r"\b1 \w+ 5 trials\b", output)
    assert "Traceback" not in output
    assert experiment.run("--max-finished-jobs=2").returncode == 0


def test_ctrl_c_twice_ends_the_trials_and_the_same_command_resumes(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE.replace("0.05", "600 if job_id == 1 else 0"))
    controller = experiment.start("--max-finished-jobs=5")
    until(lambda: runners(experiment))
    controller.send_signal(signal.SIGINT)
    said_until("Ctrl-C", controller)
    controller.send_signal(signal.SIGINT)
    output, _ = controller.communicate()
    assert controller.returncode == 130
    assert re.search(r"\b0 \w+ 5 trials\b", output)
    assert not runners(experiment)
    (experiment.root / "trial.py").write_text(CODE)
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    rows = json.loads(experiment.command("export", "--json").stdout)
    assert [(row["id"], row["state"]) for row in rows] == [(1, "complete"), (2, "complete")]


def test_a_second_controller_says_so(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE.replace("0.05", "600"))
    controller = experiment.start("--max-finished-jobs=1")
    until(lambda: runners(experiment))
    for options in ([], ["--driver=SGE"]):
        second = experiment.run(*options)
        assert second.returncode == 2
        assert f" process {controller.pid} " in second.stderr
    status = experiment.command("status")
    assert f" process {controller.pid};" in status.stdout
    cleanup = experiment.command("cleanup")
    assert cleanup.returncode == 2
    controller.send_signal(signal.SIGINT)
    said_until("Ctrl-C", controller)
    controller.send_signal(signal.SIGINT)
    controller.communicate()
