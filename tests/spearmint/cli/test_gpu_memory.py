"""Trials that run out of GPU memory are infeasible: no failures of the code."""

from __future__ import annotations

import json

import optuna
import pytest

from spearmint.choosers.history import history, trials_of
from spearmint.store.sql.sqlite import sqlite_url
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment

CODE = """
class OutOfMemoryError(RuntimeError):
    __module__ = "torch"

def main(job_id, params):
    if job_id < {first}:
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    return 1.0
"""
SHELL = """#!/bin/sh
test "$SPEARMINT_JOB_ID" = 1 || { echo 1 > "$SPEARMINT_RESULT"; exit 0; }
echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB" >&2
exit 1
"""


def broken(experiment: ExperimentDir) -> list[dict]:
    return json.loads(experiment.command("status", "--json").stdout)["broken"]


def test_the_parameters_are_infeasible_and_the_search_continues(
    make_experiment: MakeExperiment,
) -> None:
    experiment = make_experiment(CODE.format(first=4))
    done = experiment.run("--max-broken=2", "--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("trial 1:")]
    assert len(lines) == 1
    assert "infeasible: out of GPU memory at x=" in lines[0]
    assert "(trial.py:7)" in lines[0]
    assert "no longer count" not in done.stdout
    assert [trial["out_of_gpu_memory"] for trial in broken(experiment)] == [True] * 3
    storage = sqlite_url(experiment.root / "spearmint.db")
    study = optuna.load_study(study_name="trial", storage=storage)
    space = dict(study.trials[-1].distributions)
    past = history(study, trials_of(study, -1), space, constrained=True)
    assert (len(past.points), len(past.infeasible)) == (1, 3)


def test_a_search_without_any_memory_ends(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE.format(first=99))
    done = experiment.run("--max-broken=1", "--max-finished-jobs=1")
    assert done.returncode == 1
    assert "10 trials all failed" in done.stderr
    assert len(broken(experiment)) == 10


def test_memory_of_the_host_is_a_failure(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment("def main(job_id, params):\n    raise MemoryError('8 GiB')\n")
    done = experiment.run("--max-broken=2", "--max-finished-jobs=1")
    assert done.returncode == 1
    assert "first 2 trials all failed" in done.stderr
    assert "infeasible" not in done.stdout
    assert not any("out_of_gpu_memory" in trial for trial in broken(experiment))


@pytest.mark.parametrize(("last", "found"), [("seq 30\n", True), ("echo KeyError: batch\n", False)])
def test_a_shell_script_tells_by_its_output(
    make_experiment: MakeExperiment, last: str, found: bool
) -> None:
    experiment = make_experiment(config=ONE_FLOAT.replace("PYTHON", "SHELL"))
    script = SHELL.replace("exit 1", f"{last}exit 1")
    (experiment.root / "trial.sh").write_text(script)
    done = experiment.run("--max-finished-jobs=1")
    assert done.returncode == 0, done.stderr
    assert [trial.get("out_of_gpu_memory", False) for trial in broken(experiment)] == [found]
    assert ("out of GPU memory at x=" in done.stdout) is found
