"""Trials that fail in every way, run by the real command."""

from __future__ import annotations

import json

import pytest

from spearmint.drivers.processes import identity
from tests.spearmint.conftest import MakeExperiment

BREAKS = {
    "raises": ("raise ValueError('bad lr')", "ValueError: bad lr (trial.py:"),
    "nan": ("return float('nan')", "main returned NaN"),
    "none": ("return None", "main returned None"),
    "text": ("return 'low'", "main returned 'low'"),
    "two numbers": ("return np.zeros(2)", "main returned array([0., 0.])"),
    "sys.exit": ("sys.exit(3)", "sys.exit(3)"),
    "os._exit": ("os._exit(3)", "status 3"),
    "segfault": ("faulthandler._sigsegv()", "11 (SIGSEGV)"),
    "killed": ("os.kill(os.getpid(), 9)", "9 (SIGKILL)"),
    "disk full": ("raise OSError(28, 'No space left on device')", "[Errno 28] No space left"),
}

CODE = """
import faulthandler, os, sys, time
import numpy as np

def main(job_id, params):
    print("line before the end")
    if params["how"][0] == "good":
        return 1.0
{branches}
"""
BRANCH = "    if params['how'][0] == {name!r}:\n        {statement}\n"


@pytest.mark.slow
def test_each_way_to_break_is_told_with_its_reason_and_output(
    make_experiment: MakeExperiment,
) -> None:
    names = ["good", *BREAKS]
    options = " ".join(f'options: "{name}"' for name in names)
    seeds = "".join(f'seed_point {{ param {{ name: "how" str_val: "{n}" }} }}\n' for n in names)
    config = (
        'language: PYTHON\nname: "trial"\n'
        f'variable {{ name: "how" type: ENUM {options} }}\n{seeds}max_retries: 0\n'
    )
    branches = "".join(
        BRANCH.format(name=name, statement=statement) for name, (statement, _) in BREAKS.items()
    )
    experiment = make_experiment(CODE.format(branches=branches), config)
    options_ = ("--max-concurrent=4", "--max-broken=2")
    done = experiment.run(*options_, "--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    done = experiment.run(*options_, "--max-finished-jobs=2")
    assert "Traceback" not in done.stderr
    status = json.loads(experiment.command("status", "--json").stdout)
    broken = {trial["params"]["how"][0]: trial for trial in status["broken"]}
    for name, (_, reason) in BREAKS.items():
        assert reason in broken[name]["reason"], name
        assert "line before the end" in broken[name]["tail"], name
    assert "good" not in broken
    table = experiment.command("status", "--broken=20").stdout
    assert "ValueError: bad lr" in table
    assert "line before the end" in table


def test_a_trial_that_takes_too_long_is_terminated(make_experiment: MakeExperiment) -> None:
    # The only trial: on a busy machine, others would not start within the timeout.
    experiment = make_experiment("import time\ndef main(job_id, params):\n    time.sleep(600)\n")
    done = experiment.run("--trial-timeout=2", "--max-broken=1", "--polling-time=0.5")
    assert done.returncode == 1
    (broken,) = json.loads(experiment.command("status", "--json").stdout)["broken"]
    assert (broken["reason"], broken["lost"]) == ("timed out after 2 s", 0)


def test_the_search_stops_when_the_first_trials_all_break(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment("import absent_module\n")
    done = experiment.run("--max-broken=3")
    assert done.returncode == 1
    assert "3 trials" in done.stderr
    assert "No module named 'absent_module'" in done.stderr
    assert "output/00000003.out" in done.stderr
    assert done.stderr.count("Traceback") == 1, "the output of one trial is shown, not of three"
    fixed = experiment.root / "trial.py"
    fixed.write_text("def main(job_id, params):\n    return 0.5\n")
    again = experiment.run("--max-broken=3", "--max-finished-jobs=2")
    assert again.returncode == 0, again.stderr


def test_a_lost_job_runs_again_and_then_breaks(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(
        "import os\n\ndef main(job_id, params):\n"
        "    if not os.path.exists('once'):\n"
        "        open('once', 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return 0.25\n"
    )
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 0
    assert "9 (SIGKILL)" in done.stdout
    status = json.loads(experiment.command("status", "--json").stdout)
    assert status["best"]["lost"] == 1
    assert status["trials"] == {"running": 0, "queued": 0, "complete": 1, "pruned": 0, "broken": 0}


def test_a_missing_wrapper_is_named(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    (experiment.root / "trial.py").unlink()
    (experiment.root / "trail.py").write_text("")
    done = experiment.run()
    assert done.returncode == 2
    assert str(experiment.root / "trial.py") in done.stderr
    assert "'trail'" in done.stderr
    assert not (experiment.root / "spearmint.db").exists()


def test_what_a_dead_trial_leaves_behind_is_ended(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(
        "import os, subprocess, time\n\ndef main(job_id, params):\n"
        "    child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "    open('child', 'w').write(str(child.pid))\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = experiment.run("--max-broken=1", "--max-retries=0")
    assert done.returncode == 1
    pid = int((experiment.root / "child").read_text())
    assert identity(pid) is None
