"""Rules that stop a search before its last trial."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from types import SimpleNamespace

import pytest

from spearmint.controller import controller as loop
from spearmint.drivers import Job
from tests.spearmint.conftest import MakeExperiment
from tests.spearmint.fakes import FakeDriver


def test_a_target_ends_it(make_loop) -> None:
    outcomes = {i: [1.0 / i] for i in range(1, 9)}
    search = make_loop(FakeDriver(outcomes), finished=9, target=0.25)
    assert search.run().complete == 4
    assert [line for line in search.observer.lines if re.search(r"\btarget 0\.25\b", line)]
    assert make_loop(FakeDriver(), finished=9, target=0.25).run().complete == 4, "in a rerun too"


def test_a_search_that_is_done_says_so(make_loop) -> None:
    fact = re.compile(r"\b3 trials\b.*--max-finished-jobs\b")
    first = make_loop(FakeDriver(), finished=3)
    first.run()
    assert not list(filter(fact.search, first.observer.lines))
    again = make_loop(FakeDriver(), finished=3)
    assert again.run().complete == 3
    assert list(filter(fact.search, again.observer.lines))


def test_a_target_when_more_is_better(make_loop) -> None:
    assert make_loop(FakeDriver(), finished=9, target=3.0, maximize=True).run().complete == 3


@pytest.mark.parametrize(("maximize", "worst"), [(True, math.inf), (False, -math.inf)])
def test_an_infinite_value_reaches_no_target(make_loop, maximize: bool, worst: float) -> None:
    driver = FakeDriver({1: [worst], 2: [7.0]})
    search = make_loop(driver, finished=9, target=7.0, maximize=maximize)
    assert search.run().complete == 2


def test_no_better_value_for_long_ends_it(make_loop) -> None:
    outcomes = {1: [5.0], 2: [4.0], 3: [4.5], 4: [3.0], 5: [3.0], 6: [9.0], 7: [9.0]}
    search = make_loop(FakeDriver(outcomes), finished=99, patience=3)
    assert search.run().complete == 7
    assert make_loop(FakeDriver(), finished=99, patience=3).run().complete == 7, "in a rerun too"
    assert make_loop(FakeDriver(), finished=99, patience=4).run().complete == 8, "8.0 is not better"


def test_trial_time_ends_it_over_all_regions_and_runs(make_loop) -> None:
    search = make_loop(FakeDriver(), finished=99, trial_time_s=5.5, regions=("us", "de"))
    search.run()
    assert sum(figures.complete for figures in search.figures.values()) == 6, "a second each"
    again = make_loop(FakeDriver(), finished=99, trial_time_s=5.5, regions=("us", "de"))
    again.run()
    assert sum(figures.complete for figures in again.figures.values()) == 6
    assert [line for line in again.observer.lines if re.search(r"\b5\.5 s .*\btrial time\b", line)]


def test_wall_time_ends_it_and_running_trials_finish(make_loop, monkeypatch) -> None:
    now = [0.0]

    class Slow(FakeDriver):
        def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
            now[0] += 6.0
            super().wait(jobs, timeout_s)

    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now[0]))
    search = make_loop(Slow(), finished=99, time_s=10.0)
    figures = search.run()
    assert (figures.complete, figures.running) == (2, 0)


def test_money_needs_a_price_and_nothing_is_begun(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment()
    done = experiment.run("--max-cost=5")
    assert done.returncode == 2
    assert re.search(r"--max-cost\b.*--cost-per-hour\b", done.stderr)
    assert not (experiment.root / "spearmint.db").exists()


def test_money_ends_it(make_experiment: MakeExperiment) -> None:
    done = make_experiment().run("--max-cost=0.0000001", "--cost-per-hour=3600")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b0\.0 s .*\btrial time\b", done.stdout)
    assert re.search(r"^Cost: \d+\.\d\d\b", done.stdout, re.MULTILINE)
