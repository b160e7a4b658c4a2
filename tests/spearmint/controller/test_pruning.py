"""Trials that are stopped early because of their reports."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection

import pytest
from optuna.pruners import BasePruner, MedianPruner

from spearmint.choosers.history import Finals
from spearmint.choosers.pruners import make_pruner
from spearmint.drivers import Job
from spearmint.model import TrialState
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment
from tests.spearmint.fakes import FakeDriver


class Reporting(FakeDriver):
    """Trial N reports N at each wait, and ends with N after ``steps`` reports."""

    steps = 4

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        for job in jobs:
            folder = self.folders[job]
            with folder.reports.open("a") as file:
                step = folder.reports.read_text().count("\n")
                file.write(f"{step},{int(folder.path.name)}\n")
            if step + 1 == self.steps:
                self.leave(job, {"value": float(folder.path.name), "seconds": 1.0})
                self.ended.add(job)


def test_a_pruned_trial_is_ended_and_no_failure(make_loop) -> None:
    pruner = MedianPruner(n_startup_trials=2, n_warmup_steps=1)
    driver = Reporting()
    search = make_loop(driver, finished=4, pruner=pruner)
    figures = search.run()
    assert (figures.complete, figures.pruned, figures.broken) == (2, 2, 0)
    pruned = search.study.trials()[3]
    assert (pruned.state, pruned.value) == (TrialState.PRUNED, None)
    assert pruned.reports == {0: 4.0, 1: 4.0}, "stopped at the first step after the warm-up"
    assert pruned.seconds is not None
    assert make_loop(Reporting(), finished=4).run().finished == 4, "nothing is rerun"


def test_a_trial_whose_loss_is_no_number_any_more_is_pruned(make_loop) -> None:
    class Diverges(FakeDriver):
        def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
            for job in jobs:
                self.folders[job].reports.write_text("0,0.5\n1,nan\n")

    search = make_loop(Diverges(), finished=1, pruner=MedianPruner())
    assert search.run().pruned == 1
    assert search.study.trials()[0].reports == {0: 0.5}
    (stored,) = search.study._frozen()
    assert Finals([]).of(stored) == math.inf, "not estimated from its last finite report"


def test_a_result_beats_the_pruner(make_loop) -> None:
    class AtTheLastMoment(Reporting):
        def cancel(self, jobs: Collection[Job]) -> None:
            for job in set(jobs) - self.ended:
                self.leave(job, {"value": 0.5})
            super().cancel(jobs)

    pruner = MedianPruner(n_startup_trials=1, n_warmup_steps=1)
    figures = make_loop(AtTheLastMoment(), finished=2, pruner=pruner).run()
    assert (figures.complete, figures.pruned) == (2, 0)


@pytest.mark.slow
def test_the_real_job_of_a_pruned_trial_is_ended(make_experiment: MakeExperiment) -> None:
    code = (
        "import spearmint, time\n"
        "def main(job_id, params):\n"
        "    for step in range(3):\n"
        "        spearmint.report(step, float(job_id))\n"
        "    if job_id > 1:\n"
        "        time.sleep(1000)\n"
        "    return float(job_id)\n"
    )
    experiment = make_experiment(code, ONE_FLOAT + 'pruner: "median"\n')
    args = "--pruner-args=n_startup_trials=1,n_warmup_steps=1"
    done = experiment.run("--max-finished-jobs=3", args)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^trial 2: pruned .*\b2\b", done.stdout, re.MULTILINE)
    assert "2 pruned, 0 broken" in done.stdout
    rows = json.loads(experiment.command("export", "--json").stdout)
    assert [row["state"] for row in rows] == ["complete", "pruned", "pruned"]


def test_a_pruner_without_reports_is_told(make_experiment: MakeExperiment) -> None:
    done = make_experiment().run("--max-finished-jobs=1", "--pruner=median")
    assert re.search(r"\bmedian\b.*\bspearmint\.report\(", done.stdout)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--pruner=medain",), ["'medain'", "halving, hyperband, median"]),
        (("--pruner=median", "--pruner-args=x=1"), ["x", "n_startup_trials, n_warmup_steps"]),
        (("--pruner=median", "--pruner-args=n_min_trials=few"), ["n_min_trials", "'few'"]),
        (("--pruner=threshold",), ["ThresholdPruner", "--pruner-args"]),
    ],
)
def test_a_wrong_pruner(
    make_experiment: MakeExperiment, options: tuple[str, ...], facts: list[str]
) -> None:
    experiment = make_experiment()
    done = experiment.run(*options)
    assert done.returncode == 2
    for fact in facts:
        assert fact in done.stderr
    assert not (experiment.root / "spearmint.db").exists(), "nothing was started"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Hyperband", {"min_resource": "1", "max_resource": "9"}),
        ("halving", {"min_resource": "auto"}),
        ("PercentilePruner", {"percentile": "25"}),
        ("none", {}),
    ],
)
def test_pruners_by_name_and_arguments(name: str, args: dict[str, str]) -> None:
    assert isinstance(make_pruner(name, args), BasePruner)
