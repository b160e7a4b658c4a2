"""Search.minimize: functions in processes of this machine, continued by the directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint.errors import AlreadyRunning, InputError, SearchFailed, StudyMismatch
from tests import commands
from tests.waiting import is_running, until

SPACE: dict[str, Any] = {"x": (0, 1), "n": range(1, 5), "act": ["relu", "tanh"], "flag": bool}
LIMIT_S = 60


def start(directory: Path, space: dict[str, Any] = SPACE, **settings: Any) -> spearmint.Search:
    return spearmint.Search(space, directory=directory, method="RandomChooser", **settings)


def bowl(x: float, n: int, act: str, flag: bool) -> float:
    assert (type(x), type(n), type(flag)) == (float, int, bool)
    return (x - 0.5) ** 2 + n + (act == "relu") + flag


def test_a_function_is_minimized_and_the_directory_continues(tmp_path: Path) -> None:
    with start(tmp_path / "new" / "out") as search:
        best = search.minimize(bowl, trials=4, n_jobs=2)
        assert best == search.best
        assert best.value == min(trial.value for trial in search.trials)
        assert best.value == pytest.approx(bowl(**best.params))
    with start(tmp_path / "new" / "out") as search:
        assert len(search.trials) == 4
        search.minimize(bowl, trials=4)
        assert len(search.trials) == 4
        search.minimize(bowl, trials=6)
        assert len(search.trials) == 6


def test_asking_after_minimize_has_no_number_of_trials(tmp_path: Path) -> None:
    with start(tmp_path, {"x": (0, 1)}) as search:
        search.minimize(lambda x: x, trials=2)
        assert search._opened.session.study._study.sampler.total is None


def test_maximize_finds_the_largest_value(tmp_path: Path) -> None:
    with start(tmp_path, {"x": (0, 1)}) as search:
        best = search.maximize(lambda params: params["x"], trials=3)
        assert best.value == max(trial.value for trial in search.trials)
        with pytest.raises(StudyMismatch, match=r"(?s)maximize.*minimize"):
            search.minimize(lambda x: x, trials=5)


@pytest.mark.parametrize(("given", "called"), [("minimize", "maximize"), ("maximize", "minimize")])
def test_the_other_direction_is_refused(tmp_path: Path, given: str, called: str) -> None:
    with start(tmp_path, {"x": (0, 1)}, direction=given) as search:
        with pytest.raises(InputError, match=f"(?s)direction='{given}'.*Call search.{given}"):
            getattr(search, called)(lambda x: x, trials=1)
        assert not search.trials
        assert getattr(search, given)(lambda x: x, trials=1).value is not None


def test_the_commands_read_and_continue_the_search(tmp_path: Path) -> None:
    with start(tmp_path, {"x": (0, 1)}) as search:
        search.minimize(lambda x: x * 2, trials=2)
    done = commands.spearmint("--max-finished-jobs=3", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trial 3: " in done.stdout
    with start(tmp_path, {"x": (0, 1)}) as search:
        third = search.trials[2]
        assert third.value == pytest.approx(2 * third.params["x"])


def test_another_space_is_told_and_not_mixed(tmp_path: Path) -> None:
    with start(tmp_path, {"x": (0, 1), "y": bool}) as search:
        search.tell(search.ask(), 1.0)
    with pytest.raises(StudyMismatch, match=r"(?s)x: stored.* 1; now.* 2\n.*y: .*nothing"):
        start(tmp_path, {"x": (0, 2)})
    with start(tmp_path, {"y": bool, "x": (0, 1)}) as search:
        assert len(search.trials) == 1


def test_a_space_without_trials_can_be_corrected(tmp_path: Path) -> None:
    start(tmp_path, {"x": (0, 1)}).close()
    with start(tmp_path, {"x": (0, 2), "n": range(3)}, direction="maximize") as search:
        assert search.ask().params.keys() == {"x", "n"}
        search.tell(1, 3.0)
        search.tell(search.ask(), 5.0)
        assert search.best.value == 5.0


def test_a_config_of_a_user_is_not_overwritten(tmp_path: Path) -> None:
    config = tmp_path / "config.pb"
    config.write_text('language: PYTHON\nname: "mine"\n')
    with pytest.raises(InputError, match=r"config\.pb"):
        start(tmp_path)
    assert config.read_text() == 'language: PYTHON\nname: "mine"\n'


def test_a_cell_that_runs_twice_replaces_its_search(tmp_path: Path) -> None:
    first = start(tmp_path)
    asked = first.ask()
    second = start(tmp_path)
    with pytest.raises(InputError, match=r"spearmint\.Search\("):
        first.ask()
    second.tell(asked.id, 0.5)
    first.close()
    with pytest.raises(AlreadyRunning):
        spearmint.Search(tmp_path)
    second.close()


def test_failures_are_broken_trials_with_file_and_line(tmp_path: Path) -> None:
    def fails(x: float) -> float:
        raise ValueError("too deep")

    with start(tmp_path, {"x": (0, 1)}) as search:
        with pytest.raises(SearchFailed, match=r"too deep.*test_minimize\.py:\d+"):
            search.minimize(fails, trials=5, max_broken=2)
        trial = search.trials[0]
        assert trial.state == "broken"
        assert "spearmint/trial" not in trial.tail
        search.minimize(lambda x: x, trials=2)
        assert search.best is not None


def test_no_limit_of_broken_trials(tmp_path: Path) -> None:
    def fails_six_times(x: float) -> float:
        calls = tmp_path / "calls"
        with calls.open("a") as file:
            file.write("x")
        return 1.0 if len(calls.read_text()) > 6 else 1 / 0

    with start(tmp_path / "out", {"x": (0, 1)}) as search:
        search.minimize(fails_six_times, trials=1, max_broken=None)
        assert len(search.trials) == 7


def test_a_crash_ends_only_its_trial(tmp_path: Path) -> None:
    def crashes(n: int) -> float:
        if n == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    with start(tmp_path / "out", {"n": range(1, 4)}, seed=3) as search:
        search.minimize(crashes, 3, 2, max_retries=0, max_broken=50)
        reasons = {trial.params["n"]: trial.reason for trial in search.trials}
    assert "SIGKILL" in reasons.pop(1)
    assert set(reasons.values()) == {""}


def test_a_timeout_ends_a_trial_and_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def hangs(x: float) -> float:
        child = subprocess.Popen(["sleep", "600"])
        pids.write_text(f"{child.pid}\n")
        time.sleep(600)
        return x

    with start(tmp_path / "out", {"x": (0, 1)}) as search:
        with pytest.raises(SearchFailed, match="timed out after 2 s"):
            search.minimize(hangs, 1, trial_timeout=2, max_retries=0, max_broken=1)
        assert [trial.state for trial in search.trials] == ["broken"]
    for pid in pids.read_text().split() if pids.exists() else ():  # none if it started slowly
        assert not is_running(int(pid))


def test_reports_end_poor_trials(tmp_path: Path) -> None:
    def good(x: float) -> float:
        for step in range(5):
            spearmint.report(step, x)
        return x

    def poor(x: float) -> float:
        spearmint.report(4, 9.0)
        while True:
            time.sleep(0.1)

    tools = {"pruner": "median", "pruner_args": {"n_startup_trials": 2}}
    with start(tmp_path, {"x": (0, 1)}, **tools) as search:
        search.minimize(good, 2)
        search.minimize(poor, 3)
        assert [trial.state for trial in search.trials] == ["complete", "complete", "pruned"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"trials": 0},
        {"trials": 2.5},
        {"trials": True},
        {"n_jobs": 0},
        {"n_jobs": -2},
        {"batch": 0},
        {"batch": True},
        {"trial_timeout": "soon"},
        {"trial_timeout": 0},
        {"max_time": -3},
        {"patience": 0},
        {"max_broken": [5]},
        {"patience": 1.5},
        {"max_broken": 2.5},
        {"max_retries": 0.5},
        {"trial_timeot": 3},
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with start(tmp_path, {"x": (0, 1)}) as search:
        with pytest.raises(InputError, match=name):
            search.minimize(lambda x: x, **arguments)
        assert search.trials == []


def squares(trials: list[spearmint.BatchTrial]) -> list[float]:
    assert len(trials) == 3
    return [trial.params["x"] ** 2 + (trial.params["act"] is None) for trial in trials]


def test_a_function_of_several_trials_returns_their_values(tmp_path: Path) -> None:
    space = {"x": (0, 1), "act": ["relu", None]}
    with start(tmp_path, space) as search:
        best = search.minimize(squares, trials=6, batch=3)
        values = [t.params["x"] ** 2 + (t.params["act"] is None) for t in search.trials]
        assert [trial.value for trial in search.trials] == pytest.approx(values)
        assert best.value == min(trial.value for trial in search.trials)
    assert sorted(path.name for path in (tmp_path / "batches").iterdir()) == [
        "00000001",
        "00000004",
    ]
    done = commands.spearmint("--max-finished-jobs=9", "--batch=3", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trial 9: " in done.stdout


def test_a_function_of_several_trials_has_one_argument(tmp_path: Path) -> None:
    with start(tmp_path, {"x": (0, 1), "y": (0, 1)}) as search:
        with pytest.raises(InputError, match=r"(?s)a list.*train\(trials\)"):
            search.minimize(lambda x, y: x, trials=2, batch=2)
        assert search.trials == []


def test_what_cannot_be_sent_is_told_before_a_trial(tmp_path: Path) -> None:
    file = (tmp_path / "open.txt").open("w")
    with start(tmp_path / "out", {"x": (0, 1)}) as search:
        with file, pytest.raises(InputError, match=r"<lambda>"):
            search.minimize(lambda x: file.write("x"))
        with pytest.raises(InputError, match="3"):
            search.minimize(3)
        assert search.trials == []


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"config": {"x": (0, 1)}}, "directory"),
        ({"config": {"x": (0, 1)}, "directory": "d", "region": "us"}, "region"),
        ({"config": "config.pb", "directory": "d"}, "directory"),
        ({"config": 3, "directory": "d"}, "3"),
        ({"config": {"x": (0, 1)}, "directory": "d", "direction": "up"}, "'up'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], fact: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=fact):
        spearmint.Search(**arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_search_of_a_config_names_its_own_code(tmp_path: Path) -> None:
    config = tmp_path / "config.pb"
    config.write_text(
        'language: PYTHON\nname: "net"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
    )
    with spearmint.Search(config) as search, pytest.raises(InputError, match=r"net\.py"):
        search.minimize(lambda x: x)


SCRIPT = """
import os, sys, time
import spearmint
import helper

def slow(x):
    with open("started", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return helper.double(x)

search = spearmint.Search({"x": (0, 1)}, directory="out", method="RandomChooser")
search.minimize(slow, trials=3, n_jobs=2)
print("values", all(t.value == 2 * t.params["x"] for t in search.trials), len(search.trials))
"""


def script(directory: Path) -> None:
    (directory / "script.py").write_text(SCRIPT)
    (directory / "helper.py").write_text("def double(x):\n    return 2 * x\n")


def started(directory: Path) -> list[int]:
    file = directory / "started"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def test_a_killed_script_continues_with_the_trials_that_still_run(tmp_path: Path) -> None:
    script(tmp_path)
    argv = [sys.executable, "script.py"]
    first = subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.DEVNULL)
    until(lambda: len(started(tmp_path)) == 2, LIMIT_S)
    first.kill()
    first.wait()
    assert all(map(is_running, started(tmp_path)))
    (tmp_path / "go").touch()
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["values", "True", "3"]
    assert len(started(tmp_path)) == 3


def test_ctrl_c_twice_ends_the_trials_and_raises(tmp_path: Path) -> None:
    script(tmp_path)
    argv = [sys.executable, "script.py"]
    first = subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until(lambda: len(started(tmp_path)) == 2, LIMIT_S)
    first.send_signal(signal.SIGINT)
    assert first.stderr is not None
    assert "Ctrl-C" in first.stderr.readline()
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=LIMIT_S)
    assert "KeyboardInterrupt" in errors
    assert not any(map(is_running, started(tmp_path)))


def test_python_m_and_the_prompt_run_functions_too(tmp_path: Path) -> None:
    script(tmp_path)
    (tmp_path / "go").touch()
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "other.py").write_text(SCRIPT.replace('"out"', '"out2"'))
    for argv, text in (
        (["-m", "package.other"], ""),
        (["-i", "-q"], SCRIPT.replace('"out"', '"out3"').replace("search = ", "\nsearch = ")),
    ):
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "values True 3" in done.stdout, done.stderr
