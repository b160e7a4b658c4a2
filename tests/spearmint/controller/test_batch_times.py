"""The time of a job of several trials, as it counts for each of them."""

from __future__ import annotations

import time

from spearmint.drivers import JobState
from spearmint.layout import write_json
from tests.spearmint.controller.batch_fakes import Batches


def test_seconds_of_all_trials_add_up_to_the_time_of_the_job(make_loop) -> None:
    driver = Batches({1: ["stay"], 2: ["stay"]})
    search = make_loop(driver, batch=2, finished=2)
    study = search.controller.studies[0]
    study.resume()
    study.start_job()
    for running in study._running.values():
        running.started -= 100.0
    assert 100.0 <= study.seconds() < 150.0
    states = driver.poll(study.jobs)
    assert set(states.values()) == {JobState.ALIVE}


def test_an_adopted_job_counts_once_for_all_its_trials(make_loop) -> None:
    driver = Batches({1: ["stay"], 2: ["stay"]})
    first = make_loop(driver, batch=2, finished=2).controller.studies[0]
    first.resume()
    first.start_job()
    for running in first._running.values():
        write_json(running.folder.runner, {"start": time.time() - 100.0})
    study = make_loop(driver, batch=2, finished=2).controller.studies[0]
    study.resume()
    assert 100.0 <= study.seconds() < 150.0


def test_the_last_trial_of_a_job_counts_alone(make_loop) -> None:
    driver = Batches({1: ["stay"] * 9, 2: [0.5]})
    study = make_loop(driver, batch=2, finished=2).controller.studies[0]
    study.resume()
    study.start_job()
    running = study._running[1]
    running.started -= 100.0
    driver.wait(study.jobs, 0.0)
    study.collect(driver.poll(study.jobs))
    assert 50.0 <= running.charged_s() < 75.0, "half of the time with the other trial"
    running.shared -= 100.0  # as if that were 100 s ago
    assert 150.0 <= running.charged_s() < 175.0
