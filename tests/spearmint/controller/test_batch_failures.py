"""Jobs of several trials that fail as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spearmint.controller import study_run
from spearmint.drivers import Job, JobState
from spearmint.layout import write_json
from spearmint.model import TrialState
from spearmint.trial.results import TOGETHER
from tests.spearmint.controller.batch_fakes import Batches, states


class Fails(Batches):
    """The first job fails with a reason that is not that of one trial."""

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        if len(self.folders) > 1:
            super().wait(jobs, timeout_s)
            return
        (job,) = self.folders
        for number in (2, 3):
            failure = {"reason": "RuntimeError: bad", TOGETHER: True, "seconds": 1.0}
            self.write(self.folder_of(job, number), failure)
        self.step(job, 1)
        self.ended.add(job)


def test_a_failure_of_the_whole_job_is_not_that_of_each_trial(make_loop) -> None:
    driver = Fails({3: ["RuntimeError: bad"]})
    search = make_loop(driver, batch=3, finished=3, max_retries=5)
    search.run()
    assert driver.sizes == [[1, 2, 3], [2], [3], [4]]
    assert states(search.study.trials()) == {
        1: TrialState.COMPLETE,
        2: TrialState.COMPLETE,
        3: TrialState.BROKEN,
        4: TrialState.COMPLETE,
    }
    note = "trial 2 was lost (RuntimeError: bad). Retrying."
    assert note in search.observer.lines


def test_such_a_failure_counts_once_if_the_controller_is_killed_before_the_retry(make_loop) -> None:
    driver = Fails()
    study = make_loop(driver, batch=3, finished=3).controller.studies[0]
    study.resume()
    study.start_job()
    driver.wait(study.jobs, 0.0)
    study.collect(driver.poll(study.jobs))
    again = make_loop(driver, batch=3, finished=3)
    assert again.run().complete == 3
    assert driver.sizes == [[1, 2, 3], [2], [3]]
    assert [trial.lost for trial in again.study.trials()] == [0, 1, 1]


def test_its_trials_are_retried_alone_by_the_next_controller_too(make_loop) -> None:
    driver = Fails()
    study = make_loop(driver, batch=3, finished=3, max_retries=5).controller.studies[0]
    study.resume()
    study.start_job()
    driver.wait(study.jobs, 0.0)
    study.collect(driver.poll(study.jobs))
    make_loop(driver, batch=3, finished=3, max_retries=5).run()
    assert driver.sizes == [[1, 2, 3], [2], [3]]


def test_such_a_failure_counts_once_if_no_controller_saw_it(make_loop) -> None:
    driver = Fails()
    study = make_loop(driver, batch=3, finished=3).controller.studies[0]
    study.resume()
    study.start_job()
    driver.wait(study.jobs, 0.0)
    for _ in range(2):  # the first one is killed before it starts a job
        make_loop(driver, batch=3, finished=3).controller.studies[0].resume()
    again = make_loop(driver, batch=3, finished=3)
    assert again.run().complete == 3
    assert driver.sizes == [[1, 2, 3], [2], [3]]
    assert [trial.lost for trial in again.study.trials()] == [0, 1, 1]


class Hangs(Fails):
    """The first job has its result and does not exit, as seen by a queue."""

    detaches = True

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        is_first = len(self.folders) == 1
        over = self.folders[next(iter(self.folders))].result
        if not (is_first and over.exists()):
            super().wait(jobs, timeout_s)
        if is_first and not over.exists():
            write_json(over, {})
            self.ended.clear()

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        found = super().poll(jobs)
        over = [job for job in set(found) - self.ended if self.folders[job].result.exists()]
        return {**found, **dict.fromkeys(over, JobState.FINISHED)}


def test_a_failed_job_that_does_not_exit_is_ended_and_its_trials_retried(
    make_loop, monkeypatch
) -> None:
    monkeypatch.setattr(study_run, "EXIT_GRACE_S", 0.2)
    driver = Hangs()
    search = make_loop(driver, batch=3, finished=3)
    assert search.run().complete == 3
    assert driver.sizes == [[1, 2, 3], [2], [3]]


def test_without_retries_it_is(make_loop) -> None:
    search = make_loop(Fails(), batch=3, finished=3, max_retries=0)
    search.run()
    reasons = [trial.reason for trial in search.study.trials()]
    assert reasons == ["", "RuntimeError: bad", "RuntimeError: bad", "", ""]
