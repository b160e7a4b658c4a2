"""``batch`` in config.pb, with the real command, processes and kills."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from spearmint.layout import Layout
from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment
from tests.waiting import is_running, text_of, until

BATCH = f"{ONE_FLOAT}batch: 4\n"
# The first two trials of a job end at once, and the others when the file "go" exists.
CODE = """
import fcntl, os, time

def main_batch(trials):
    for trial in trials:
        trial.running = open(f"running-{trial.id}", "w")
        fcntl.flock(trial.running, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if it already runs
        with open("started.txt", "a") as file:
            file.write(f"{trial.id}\\n")
    print("trials", [trial.id for trial in trials])
    for place, trial in enumerate(trials):
        while place > 1 and not os.path.exists("go"):
            time.sleep(0.02)
        trial.report(1, 0.5)
        trial.tell(trial.params["x"])
"""


@pytest.fixture
def experiment(make_experiment: MakeExperiment) -> Iterator[ExperimentDir]:
    made = make_experiment(CODE, BATCH)
    yield made
    (made.root / "go").touch()  # lets jobs end that a failed test left


def rows(experiment: ExperimentDir) -> dict[int, dict[str, Any]]:
    done = experiment.command("export", "--json")
    return {row["id"]: row for row in json.loads(done.stdout)} if done.stdout else {}


def complete(experiment: ExperimentDir) -> list[int]:
    return [n for n, row in rows(experiment).items() if row["state"] == "complete"]


def starts(experiment: ExperimentDir) -> Counter[int]:
    return Counter(map(int, text_of(experiment.root / "started.txt").split()))


def runner(experiment: ExperimentDir, first: int = 1) -> int:
    folder = Layout(experiment.root).batch(first)
    until(lambda: folder.runner.exists())
    return int(json.loads(folder.runner.read_text())["pid"])


def end(controller: Any) -> str:
    output, _ = controller.communicate()
    return str(output)


def test_trials_run_in_jobs_and_each_has_its_own_result(experiment: ExperimentDir) -> None:
    (experiment.root / "go").touch()
    done = experiment.run("--max-finished-jobs=10")
    assert done.returncode == 0, done.stderr
    assert "with 1 job of up to 4 trials at a time" in done.stdout
    assert complete(experiment) == list(range(1, 11))
    logs = sorted(path.name for path in Layout(experiment.root).outputs.iterdir())
    assert logs == ["00000001.out", "00000005.out", "00000009.out"]
    shown = json.loads(commands.spearmint("show", experiment.root, "7", "--json").stdout)
    assert shown["log"].endswith("00000005.out")
    assert "trials [5, 6, 7, 8]" in shown["tail"]
    assert shown["curve"] == {"1": 0.5}
    assert len(shown["attempts"]) == 1


def test_results_are_stored_while_the_job_runs_and_a_killed_controller_adopts_it(
    experiment: ExperimentDir,
) -> None:
    controller = experiment.start("--max-finished-jobs=4")
    until(lambda: complete(experiment) == [1, 2])
    os.killpg(controller.pid, signal.SIGKILL)
    end(controller)
    assert is_running(runner(experiment))
    status = experiment.command("status", "--json").stdout
    assert json.loads(status)["trials"]["running"] == 2
    (experiment.root / "go").touch()
    until(lambda: not is_running(runner(experiment)))
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 0, done.stderr
    assert complete(experiment) == [1, 2, 3, 4]
    assert set(starts(experiment).values()) == {1}, "a trial ran twice"


def test_a_killed_job_loses_no_result_and_the_others_are_retried_alone(
    experiment: ExperimentDir,
) -> None:
    controller = experiment.start("--max-finished-jobs=4")
    until(lambda: complete(experiment) == [1, 2])
    os.kill(runner(experiment), signal.SIGKILL)
    (experiment.root / "go").touch()
    output = end(controller)
    assert controller.returncode == 0, output
    assert "trial 3 was lost (killed by signal 9 (SIGKILL)). Retrying." in output
    assert complete(experiment) == [1, 2, 3, 4]
    assert starts(experiment) == {1: 1, 2: 1, 3: 2, 4: 2}
    assert [Layout(experiment.root).log(n).stem[-1] for n in (1, 2, 3, 4)] == list("1134")


def test_the_controller_and_its_job_are_killed(experiment: ExperimentDir) -> None:
    controller = experiment.start("--max-finished-jobs=4")
    until(lambda: complete(experiment) == [1, 2])
    os.killpg(controller.pid, signal.SIGKILL)
    os.kill(runner(experiment), signal.SIGKILL)
    end(controller)
    (experiment.root / "go").touch()
    done = experiment.run("--max-finished-jobs=4")
    assert done.returncode == 0, done.stderr
    assert complete(experiment) == [1, 2, 3, 4]
    assert starts(experiment)[1] == starts(experiment)[2] == 1


def test_stop_ends_one_trial_of_a_running_job(experiment: ExperimentDir) -> None:
    code = CODE.replace("while place > 1", "while place > 1 and not trial.has_ended")
    (experiment.root / "trial.py").write_text(code)
    controller = experiment.start("--max-finished-jobs=3")
    until(lambda: complete(experiment) == [1, 2])
    done = commands.spearmint("stop", experiment.root, "3")
    assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: rows(experiment)[3]["state"] == "broken")
    (experiment.root / "go").touch()
    assert controller.wait() == 0, end(controller)
    end(controller)
    assert starts(experiment)[3] == 1


def test_check_names_a_job_whose_trials_have_all_ended(experiment: ExperimentDir) -> None:
    """The job does not look whether its trials were stopped."""
    controller = experiment.start("--max-finished-jobs=4")
    until(lambda: complete(experiment) == [1, 2])
    os.killpg(controller.pid, signal.SIGKILL)
    end(controller)
    assert experiment.command("check").returncode == 0
    assert commands.spearmint("stop", experiment.root, "3", "4").returncode == 0
    found = experiment.command("check")
    assert found.returncode == 1
    assert "trials 1, 2, 3, 4 have ended, and their job still runs" in found.stdout
    assert experiment.command("check", "--fix").returncode == 0
    assert not is_running(runner(experiment))


def test_ctrl_c_twice_keeps_what_has_ended(experiment: ExperimentDir) -> None:
    controller = experiment.start("--max-finished-jobs=4")
    until(lambda: complete(experiment) == [1, 2])
    for _ in range(2):
        controller.send_signal(signal.SIGINT)
        until(lambda: controller.poll() is not None or is_running(controller.pid))
    until(lambda: controller.poll() is not None or controller.send_signal(signal.SIGINT))
    end(controller)
    assert not is_running(runner(experiment))
    (experiment.root / "go").touch()
    assert experiment.run("--max-finished-jobs=4").returncode == 0
    assert complete(experiment) == [1, 2, 3, 4]
    assert starts(experiment)[1] == 1
    assert Layout(experiment.root).log(4).stem == "00000003", "the others ran together"


def test_a_failure_of_the_code_names_its_line_once_for_all(make_experiment: MakeExperiment) -> None:
    code = "def main_batch(trials):\n    trials.missing()\n"
    done = make_experiment(code, BATCH).run("--max-finished-jobs=4", "--max-retries=0")
    assert done.returncode == 1
    assert "the first 8 trials all failed" in done.stderr + done.stdout
    assert "(trial.py:2)" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("config", "options", "named"),
    [
        (BATCH, (), "no function main_batch(trials)"),
        (BATCH.replace("PYTHON", "SHELL"), (), "needs language: PYTHON"),
        (BATCH, ("--launcher=torchrun",), "exclude each other"),
        (BATCH.replace("4", "0"), (), "batch"),
    ],
)
def test_a_batch_that_cannot_run_is_refused(
    make_experiment: MakeExperiment, config: str, options: tuple[str, ...], named: str
) -> None:
    experiment = make_experiment("def main(job_id, params): return 1.0\n", config)
    (experiment.root / "trial.sh").write_text("")
    done = experiment.run(*options)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not (experiment.root / "jobs").exists()


def test_code_with_main_batch_only_says_what_to_add(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment("def main_batch(trials): ...\n")
    done = experiment.run("--max-broken=1")
    assert done.returncode == 2
    assert "has no function main(job_id, params)" in done.stderr
    assert "To call main_batch: --batch=8" in done.stderr
    assert not (experiment.root / "jobs").exists()


def test_batch_on_the_command_line_overrides_config_pb(experiment: ExperimentDir) -> None:
    (experiment.root / "go").touch()
    assert experiment.run("--max-finished-jobs=4", "--batch=2").returncode == 0
    batches = Layout(experiment.root).batches
    assert sorted(path.name for path in batches.iterdir()) == ["00000001", "00000003"]


def test_cleanup_removes_the_folders_of_jobs(experiment: ExperimentDir) -> None:
    (experiment.root / "go").touch()
    assert experiment.run("--max-finished-jobs=4").returncode == 0
    assert experiment.command("cleanup").returncode == 0
    assert not Layout(experiment.root).batches.exists()


def test_the_best_trial_is_trained_alone_and_a_new_generation_takes_the_jobs_away(
    experiment: ExperimentDir,
) -> None:
    final = """
def final(job_id, params, model_dir):
    (model_dir / "weights").write_text(str(params["x"][0]))
    return 0.5
"""
    (experiment.root / "trial.py").write_text(CODE + final)
    (experiment.root / "go").touch()
    done = experiment.run("--max-finished-jobs=4", "--then-final")
    assert done.returncode == 0, done.stderr
    assert list((experiment.root / "models").rglob("weights"))
    assert experiment.run("--max-finished-jobs=4", "--then-final", "--again").returncode == 0
    old = experiment.root / "generations" / "00000001"
    assert [path.name for path in (old / "batches").iterdir()] == ["00000001"]
    assert Layout(old).log(3) == old / "output" / "00000001.out"
    assert complete(experiment) == [1, 2, 3, 4]


def test_regions_have_jobs_of_their_own(make_experiment: MakeExperiment) -> None:
    config = BATCH + 'region: "us"\nregion: "jp"\n'
    code = "import spearmint\ndef main_batch(trials):\n    assert spearmint.region() in 'us jp'\n"
    experiment = make_experiment(f"{code}    [trial.tell(1) for trial in trials]\n", config)
    done = experiment.run("--max-finished-jobs=6", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    for region in ("us", "jp"):
        names = [path.name for path in Layout(experiment.root, region).batches.iterdir()]
        assert sorted(names) == ["00000001", "00000005"]


def test_check_leaves_a_failure_of_the_whole_job_to_the_retries(
    make_experiment: MakeExperiment,
) -> None:
    code = """
import os, time

def main_batch(trials):
    while not os.path.exists("go"):
        time.sleep(0.02)
    if len(trials) > 1:
        raise RuntimeError("too many")
    trials[0].tell(trials[0].params["x"])
"""
    experiment = make_experiment(code, BATCH)
    controller = experiment.start("--max-finished-jobs=4")
    job = runner(experiment)
    os.killpg(controller.pid, signal.SIGKILL)
    end(controller)
    (experiment.root / "go").touch()
    until(lambda: not is_running(job))
    assert experiment.command("check").returncode == 0
    assert experiment.run("--max-finished-jobs=4").returncode == 0
    assert complete(experiment) == [1, 2, 3, 4]
