"""Failed trials whose cause is gone, and SHELL scripts without the execute bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from optuna.samplers import RandomSampler

from spearmint.controller.failures import is_about_missing, retry_note
from spearmint.controller.limits import StudyLimits
from spearmint.controller.tally import Tally
from spearmint.model import Experiment, Kind, Language, Result, Trial, TrialState, Variable
from spearmint.requests import retry
from spearmint.store.opening import open_study
from spearmint.store.session import read_sessions
from spearmint.store.sql.sqlite import sqlite_url
from spearmint.trial.languages import shell_command
from spearmint.trial.outputs import BadResult
from tests.spearmint.conftest import ExperimentDir, MakeExperiment

READS = "def main(job_id, params):\n    open('data.csv').close()\n    return params['x'][0]\n"
SHELL = 'language: SHELL\nname: "tool"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'


def hidden(experiment: ExperimentDir) -> set[int]:
    (session,) = read_sessions(experiment.root, None)
    return session.study.disregarded()


def states(experiment: ExperimentDir) -> list[str]:
    rows = json.loads(experiment.command("export", "--json").stdout)
    return [row["state"] for row in rows]


def test_a_supplied_file_forgives_all_earlier_failures(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(READS)
    assert experiment.run("--max-broken=3").returncode == 1
    assert hidden(experiment) == set()
    (experiment.root / "data.csv").touch()
    done = experiment.run("--max-finished-jobs=2")
    assert done.returncode == 0, done.stderr
    assert "--retry-broken" in done.stdout
    assert hidden(experiment) == {1, 2, 3}


def test_a_file_that_appears_during_the_search_forgives_too(
    make_experiment: MakeExperiment,
) -> None:
    code = READS.replace("    open", "    if job_id == 3: open('data.csv', 'w').close()\n    open")
    experiment = make_experiment(code)
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    assert hidden(experiment) == {1, 2}


def test_failures_that_depend_on_the_point_still_count(make_experiment: MakeExperiment) -> None:
    code = "def main(job_id, params):\n    if job_id < 3: raise ValueError('x')\n    return 1.0\n"
    experiment = make_experiment(code)
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    assert states(experiment) == ["broken", "broken", "complete", "complete"]
    assert hidden(experiment) == set()


def test_failures_after_a_success_still_count(make_experiment: MakeExperiment) -> None:
    code = READS.replace("    open", "    if job_id == 1: return 1.0\n    open")
    experiment = make_experiment(code)
    assert experiment.run("--max-broken=1").returncode == 1
    (experiment.root / "data.csv").touch()
    assert experiment.run("--max-finished-jobs=3").returncode == 0
    assert hidden(experiment) == set()


def test_retry_broken_repeats_each_point_once(make_experiment: MakeExperiment) -> None:
    code = READS.replace("    open", "    if job_id == 1: return 1.0\n    open")
    experiment = make_experiment(code)
    assert experiment.run("--max-broken=1", "--max-finished-jobs=9").returncode == 1
    broken = states(experiment).count("broken")
    (experiment.root / "data.csv").touch()
    options = ("--retry-broken", f"--max-finished-jobs={1 + broken}")
    assert experiment.run(*options).returncode == 0
    rows = json.loads(experiment.command("export", "--json").stdout)
    failed = [row["params"] for row in rows if row["state"] == "broken"]
    repeated = [row["params"] for row in rows if row["id"] > 1 + broken]
    assert sorted(map(str, failed)) == sorted(map(str, repeated))
    assert hidden(experiment) == set(range(2, 2 + broken))
    again = experiment.run(*options)
    assert "broken trial to retry" in again.stdout
    assert len(states(experiment)) == len(rows)


def test_disregarded_failures_are_repeated_as_their_message_says(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(READS)
    assert experiment.run("--max-broken=3").returncode == 1
    (experiment.root / "data.csv").touch()
    assert experiment.run("--max-finished-jobs=2").returncode == 0
    assert hidden(experiment) == {1, 2, 3}
    full = experiment.run("--retry-broken", "--max-finished-jobs=2")
    assert "Queued the points of 3 broken trials; raise --max-finished-jobs" in full.stdout
    assert experiment.run("--retry-broken", "--max-finished-jobs=5").returncode == 0
    rows = json.loads(experiment.command("export", "--json").stdout)
    assert [row["state"] for row in rows] == ["broken"] * 3 + ["complete"] * 5
    points = [str(row["params"]) for row in rows]
    assert sorted(points[:3]) == sorted(points[5:])


def test_a_killed_controller_does_not_queue_points_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(trials: list[Trial]) -> None:
        raise KeyboardInterrupt

    x = Variable(name="x", kind=Kind.FLOAT, low=0, high=1)
    experiment = Experiment(
        path=tmp_path / "config.pb", name="net", language=Language.PYTHON, variables=(x,)
    )
    study = open_study(experiment, sqlite_url(tmp_path / "a.db"))
    study.use(RandomSampler(seed=0))
    for _ in range(2):
        study.break_(study.ask(), Result(value=None, reason="lost"), "")
    with monkeypatch.context() as patch:
        patch.setattr(study, "disregard", killed)
        with pytest.raises(KeyboardInterrupt):
            retry(study)
    assert retry(study) == 2
    points = [trial.params for trial in study.trials()]
    assert study.queued_points() == [{"x": point["x"][0]} for point in points]
    study.complete(study.ask(), Result(value=1.0))
    assert retry(study) == 1
    assert len(study.queued_points()) == 1


def test_the_message_of_a_retry_says_why_nothing_runs() -> None:
    tally = Tally(limits=StudyLimits(finished=2, target=1.0))
    assert retry_note(3, tally, 1) == "Queued the points of 3 broken trials."
    assert retry_note(1, tally, 1) == "Queued the points of 1 broken trial."
    assert "--max-finished-jobs" in retry_note(3, tally, 2)
    tally.add(Trial(id=1, state=TrialState.COMPLETE, params={}, value=0.5))
    assert "the target 1 is reached" in retry_note(3, tally, 0)
    assert "no broken trial" in retry_note(0, tally, 0)


def test_retried_failures_are_reported_once(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(READS)
    assert experiment.run("--max-broken=2").returncode == 1
    (experiment.root / "data.csv").touch()
    done = experiment.run("--retry-broken", "--max-finished-jobs=2")
    assert done.returncode == 0, done.stderr
    assert "2 broken trials" in done.stdout
    assert "--retry-broken" not in done.stdout
    assert hidden(experiment) == {1, 2}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("FileNotFoundError: [Errno 2] No such file", True),
        ("ModuleNotFoundError: No module named 'x' (t.py:1)", True),
        ("PermissionError: [Errno 13]", True),
        ("/a/tool.sh exited with status 126", True),
        ("/a/tool.sh exited with status 1", False),
        ("ValueError: FileNotFoundError", False),
        ("", False),
    ],
)
def test_what_is_missing_does_not_depend_on_the_point(reason: str, expected: bool) -> None:
    assert is_about_missing(reason) is expected


@pytest.mark.parametrize(
    ("content", "program"),
    [
        (b"#!/usr/bin/env python3\nprint()", ["/usr/bin/env", "python3"]),
        (b"#! /usr/bin/awk -f  \n", ["/usr/bin/awk", "-f"]),
        (b"#!/bin/bash -e -x\r\n", ["/bin/bash", "-e -x"]),
        (b"#!\n", ["/bin/sh"]),
        (b"echo 1\n", ["/bin/sh"]),
        (b"", ["/bin/sh"]),
        (b"\xff\xfe", ["/bin/sh"]),
    ],
)
def test_a_script_without_the_execute_bit_runs_by_its_first_line(
    tmp_path: Path, content: bytes, program: list[str]
) -> None:
    path = tmp_path / "tool"
    path.write_bytes(content)
    assert shell_command(path) == [*program, str(path)]
    path.chmod(0o755)
    assert shell_command(path) == [str(path)]


def test_a_binary_without_the_execute_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_bytes(b"\x7fELF\x02\x01")
    with pytest.raises(BadResult, match=r"chmod \+x"):
        shell_command(path)


def test_a_python_script_without_the_execute_bit_is_searched_and_told(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment("", SHELL)
    script = experiment.root / "tool"
    script.write_text(
        "#!/usr/bin/env python3\nimport os\n"
        "open(os.environ['SPEARMINT_RESULT'], 'w').write(os.environ['SPEARMINT_PARAM_x'])\n"
    )
    done = experiment.run("--max-finished-jobs=2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("chmod +x") == 1
    assert "/usr/bin/env python3" in done.stdout
