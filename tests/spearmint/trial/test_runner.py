from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spearmint.layout import TrialFolder, write_json
from spearmint.trial.reporting import read_reports


def run_trial(
    tmp_path: Path, code: str, *, language: str = "PYTHON", params: dict | None = None
) -> tuple[dict, str]:
    """Run one trial with the real runner; return result.json and the output."""
    name = {"PYTHON": "wrapper.py", "SHELL": "wrapper.sh", "MATLAB": "wrapper.m"}[language]
    (tmp_path / name).write_text(code)
    folder = TrialFolder(tmp_path / "jobs" / "00000007")
    folder.path.mkdir(parents=True, exist_ok=True)
    spec = {
        "key": "k",
        "job_id": 7,
        "directory": str(tmp_path),
        "name": "wrapper",
        "language": language,
    }
    write_json(folder.spec, {**spec, "params": params or {}})
    done = subprocess.run(
        [sys.executable, "-m", "spearmint.trial.runner", str(folder.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(folder.result.read_text()), done.stdout + done.stderr


@pytest.mark.parametrize("gpus", ["GPU-3f7a,GPU-9b21", "", None])
def test_the_gpus_of_a_trial_are_known_after_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if gpus is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    run_trial(tmp_path, "def main(job_id, params): return 1.0")
    runner = json.loads((tmp_path / "jobs" / "00000007" / "runner.json").read_text())
    assert runner.get("gpus") == gpus
    assert runner["host"] == os.uname().nodename


def test_code_that_is_also_a_script_gets_the_defaults_of_its_options(tmp_path: Path) -> None:
    code = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.25)
def main(job_id, params):
    print(parser.prog, sys.argv[1:])
    return parser.parse_args().lr
"""
    result, output = run_trial(tmp_path, code)
    assert (result["value"], output) == (0.25, "wrapper.py []\n")


@pytest.mark.parametrize("coerced", ["0", "1"])
def test_any_text_can_be_printed_in_the_c_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coerced: str
) -> None:
    """There, streams accept bytes that could not be decoded, and no other surrogates."""
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", coerced), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)
    code = "def main(job_id, params):\n    print('a\\ud800b', chr(233))\n    return 1.0\n"
    result, output = run_trial(tmp_path, code)
    assert result["value"] == 1.0
    assert "a\\ud800b" in output


def test_main_gets_arrays_and_lists_as_in_the_original(tmp_path: Path) -> None:
    params = {
        "lr": {"kind": "FLOAT", "values": [0.5]},
        "units": {"kind": "INT", "values": [3, 4]},
        "act": {"kind": "ENUM", "values": ["relu"]},
    }
    code = (
        "import numpy as np, os\n"
        "def main(job_id, params):\n"
        "    assert job_id == 7\n"
        "    assert params['lr'].dtype == np.float64 and params['lr'].shape == (1,)\n"
        "    assert params['units'].dtype.kind == 'i' and list(params['units']) == [3, 4]\n"
        "    assert params['act'] == ['relu']\n"
        "    assert os.getcwd() == os.path.dirname(os.path.abspath(__file__))\n"
        "    return params['lr'] * 2\n"
    )
    result, output = run_trial(tmp_path, code, params=params)
    assert result["value"] == 1.0, output
    assert result["seconds"] >= 0


def test_modules_beside_the_wrapper_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("ANSWER = 42\n")
    result, _ = run_trial(tmp_path, "import helper\ndef main(j, p): return helper.ANSWER\n")
    assert result["value"] == 42.0


def test_an_infinite_value_is_a_result(tmp_path: Path) -> None:
    result, _ = run_trial(tmp_path, "def main(j, p): return float('inf')\n")
    assert result["value"] == float("inf")


def test_reports_are_kept(tmp_path: Path) -> None:
    code = (
        "from spearmint import report\n"
        "def main(j, p):\n    report(1, 0.5)\n    report(2, 0.25)\n    return 0.25\n"
    )
    run_trial(tmp_path, code)
    assert read_reports(tmp_path / "jobs/00000007/reports.csv") == {1: 0.5, 2: 0.25}


def test_a_torn_report_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "reports.csv").write_text("1,0.5\n2,0.")
    assert read_reports(tmp_path / "reports.csv") == {1: 0.5, 2: 0.0}
    (tmp_path / "reports.csv").write_text("1,0.5\nnothing\n2,")
    assert read_reports(tmp_path / "reports.csv") == {1: 0.5}
    (tmp_path / "reports.csv").write_text("99999999999999999999,1.0\n-1,1.0\n3,0.5\n")
    assert read_reports(tmp_path / "reports.csv") == {3: 0.5}


def test_shell_gets_parameters_and_answers_by_file(tmp_path: Path) -> None:
    params = {
        "lr": {"kind": "FLOAT", "values": [0.5]},
        "units": {"kind": "INT", "values": [3, 4]},
        "the act": {"kind": "ENUM", "values": ["a b"]},
    }
    code = (
        'test "$SPEARMINT_JOB_ID" = 7 || exit 11\n'
        'test "$SPEARMINT_PARAM_units" = "3 4" || exit 12\n'
        'test "$SPEARMINT_PARAM_the_act" = "a b" || exit 13\n'
        'grep -q \'"units": \\[3, 4\\]\' "$SPEARMINT_PARAMS" || exit 14\n'
        'echo 1,0.75 >> "$SPEARMINT_REPORTS"\n'
        'echo "$SPEARMINT_PARAM_lr" > "$SPEARMINT_RESULT"\n'
    )
    result, output = run_trial(tmp_path, code, language="SHELL", params=params)
    assert result.get("value") == 0.5, (result, output)
    assert read_reports(tmp_path / "jobs/00000007/reports.csv") == {1: 0.75}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("exit 3\n", ["wrapper.sh", "status 3"]),
        ("kill -9 $$\n", ["wrapper.sh", "SIGKILL"]),
        ("true\n", ["$SPEARMINT_RESULT"]),
        ('echo low > "$SPEARMINT_RESULT"\n', ["'low'", "$SPEARMINT_RESULT"]),
        ('echo nan > "$SPEARMINT_RESULT"\n', ["NaN", "$SPEARMINT_RESULT"]),
    ],
)
def test_shell_trials_that_break(tmp_path: Path, code: str, reason: list[str]) -> None:
    result, _ = run_trial(tmp_path, code, language="SHELL")
    assert "value" not in result
    assert all(fact in result["reason"] for fact in reason)


def test_a_finished_trial_is_not_run_again(tmp_path: Path) -> None:
    code = "def main(j, p):\n    open('runs', 'a').write('x')\n    return 1\n"
    run_trial(tmp_path, code)
    run_trial(tmp_path, code)
    assert (tmp_path / "runs").read_text() == "x"


def test_the_runner_imports_neither_optuna_nor_scipy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "def main(j, p):\n"
        "    heavy = {'optuna', 'scipy', 'sqlalchemy', 'click', 'rich', 'google.protobuf'}\n"
        "    found = heavy & set(sys.modules)\n"
        "    assert not found, found\n"
        "    return 1\n"
    )
    result, output = run_trial(tmp_path, code)
    assert result.get("value") == 1.0, output


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("e = ValueError('bad lr')\n    e.add_note('-----')\n    raise e", "ValueError: bad lr"),
        ("import numpy\n    return numpy.zeros((3, 3))", "main returned array([[0., 0., 0.], [0."),
    ],
)
def test_the_reason_is_the_message_in_one_line(tmp_path: Path, end: str, reason: str) -> None:
    result, _ = run_trial(tmp_path, f"def main(j, p):\n    {end}\n")
    assert result["reason"].startswith(reason)
    assert "\n" not in result["reason"]


def test_no_trial_to_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spearmint.trial.runner", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert str(TrialFolder(tmp_path).spec) in done.stderr


def test_a_trial_may_close_every_descriptor(tmp_path: Path) -> None:
    result, _ = run_trial(
        tmp_path, "import os\ndef main(j, p):\n    os.closerange(3, 256)\n    return 1\n"
    )
    assert result["value"] == 1.0


def test_a_trial_may_remove_its_output(tmp_path: Path) -> None:
    code = "import sys\ndef main(j, p):\n    sys.stdout = None\n    return 1\n"
    result, _ = run_trial(tmp_path, code)
    assert result["value"] == 1.0


def test_a_fork_that_returns_too_does_not_count(tmp_path: Path) -> None:
    code = "import os\ndef main(j, p):\n    return -1 if os.fork() == 0 else (os.wait(), 1)[1]\n"
    result, _ = run_trial(tmp_path, code)
    assert result["value"] == 1.0


def test_the_trial_dir_is_the_trials_own(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\n"
        "def main(j, p):\n"
        "    own = pathlib.Path(os.environ['SPEARMINT_TRIAL_DIR'])\n"
        "    (own / 'result.json').write_text('{\"loss\": 1}')\n"
        "    return len(list(own.iterdir()))\n"
    )
    result, _ = run_trial(tmp_path, code)
    assert result["value"] == 1.0


@pytest.mark.parametrize("name", ["random", "numpy", "threading"])
def test_a_wrapper_may_be_called_like_a_library(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text(
        "import random, threading\nimport numpy as np\n"
        "def main(j, p):\n    return float(np.float64(1)) + 0 * random.random()\n"
    )
    folder = TrialFolder(tmp_path / "trial")
    folder.path.mkdir()
    spec = {"key": "k", "job_id": 1, "directory": str(tmp_path), "name": name, "params": {}}
    write_json(folder.spec, {**spec, "language": "PYTHON"})
    argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", str(folder.path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert json.loads(folder.result.read_text()).get("value") == 1.0, done.stderr


@pytest.mark.parametrize(
    ("variables", "status"), [({}, 0), ({"SPEARMINT_RERUN_EXIT_CODE": "85"}, 85)]
)
def test_a_trial_that_another_process_runs_is_left_to_it(
    tmp_path: Path, variables: dict[str, str], status: int
) -> None:
    """The exit code asks the queue to rerun the job, if the queue has a code for that."""
    folder = TrialFolder(tmp_path)
    spec = {"key": "k", "job_id": 1, "directory": str(tmp_path), "name": "x", "params": {}}
    write_json(folder.spec, {**spec, "language": "PYTHON"})
    with folder.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # the runner must ask for an exclusive lock
        done = subprocess.run(
            [sys.executable, "-m", "spearmint.trial.runner", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **variables},
        )
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1, "one line says why"
    assert not folder.result.exists()
    assert not folder.runner.exists(), "the trial did not start"


def test_letters_that_the_locale_lacks_do_not_fail_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result, output = run_trial(tmp_path, "def main(job_id, params):\n    print('ä€')\n    return 1")
    assert result["value"] == 1.0
    assert output == "\\xe4\\u20ac\n"
