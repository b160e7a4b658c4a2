"""Regions: one search per region, at the same time, with separate results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spearmint.drivers import Job
from spearmint.errors import SearchFailed
from spearmint.layout import read_json
from tests.spearmint.fakes import FakeDriver


def test_regions_share_the_room_fairly(make_loop) -> None:
    driver = FakeDriver()
    search = make_loop(driver, finished=2, concurrent=4, regions=("us", "de", "jp"))
    search.run()
    assert driver.most == 4
    assert [figures.complete for figures in search.figures.values()] == [2, 2, 2]
    first = [job.id.split("-")[0] for job in list(driver.folders)[:3]]
    assert first == ["x@us", "x@de", "x@jp"], "one trial each before a second one"


def test_regions_keep_their_results_apart(make_loop, tmp_path: Path) -> None:
    search = make_loop(FakeDriver(), finished=2, regions=("us", "de"))
    search.run()
    for study, region in zip(search.studies, ("us", "de"), strict=True):
        assert [(t.region, t.id) for t in study.trials()] == [(region, 1), (region, 2)]
        folder = tmp_path / "regions" / region
        assert sorted(path.name for path in (folder / "jobs").iterdir()) == ["00000001", "00000002"]
        assert (folder / "best_job_and_result.txt").exists()
        assert read_json(folder / "jobs" / "00000001" / "trial.json")["region"] == region


def test_a_region_that_fails_does_not_end_the_others(make_loop) -> None:
    class FailsInDe(FakeDriver):
        def leave(self, job: Job, result: dict[str, object]) -> None:
            super().leave(job, {"reason": "typo"} if "@de" in job.id else result)

    search = make_loop(FailsInDe(), finished=4, broken=2, regions=("us", "de"))
    with pytest.raises(SearchFailed, match=r"^de: .*\b2 trials\b"):
        search.run()
    assert [len(study.trials()) for study in search.studies] == [4, 2]


def test_a_warm_start_lets_a_region_try_first_what_was_best_elsewhere(make_loop) -> None:
    names = ("us", "de", "jp")
    search = make_loop(FakeDriver(), finished=6, concurrent=2, regions=names, warm_start=2)
    search.run()
    us, de, jp = (study.trials() for study in search.studies)
    best = {
        trial.params["x"]
        for trials in (us, de)
        for trial in sorted(trials, key=lambda trial: trial.value)[:3]
    }
    assert {trial.params["x"] for trial in jp[:2]} <= best
    assert [line for line in search.observer.lines if re.search(r"^jp: .*\b2 points\b", line)]
    order = [line for line in search.observer.lines if line.startswith("submitted")]
    assert len(order) == 18


def test_with_a_warm_start_no_more_regions_are_open_than_trials_run(make_loop) -> None:
    driver = FakeDriver()
    names = ("us", "de", "jp")
    make_loop(driver, finished=6, concurrent=1, regions=names, warm_start=1).run()
    regions = [job.id.partition("@")[2].partition("-")[0] for job in driver.folders]
    assert regions == ["us"] * 6 + ["de"] * 6 + ["jp"] * 6


def test_a_warm_start_goes_on_after_a_kill(make_loop) -> None:
    names = ("us", "de")
    make_loop(FakeDriver(), finished=6, regions=names[:1]).run()
    search = make_loop(FakeDriver(), finished=6, regions=names, warm_start=3)
    search.run()
    again = make_loop(FakeDriver(), finished=8, regions=names, warm_start=3)
    again.run()
    assert [len(study.trials()) for study in again.studies] == [8, 8]
    assert not [line for line in again.observer.lines if re.search(r"\d points\b", line)]
