"""Jobs of several trials, with a driver in memory: sizes, single results, retries, kills."""

from __future__ import annotations

import pytest
from optuna.pruners import MedianPruner

from spearmint.controller import ending
from spearmint.controller.events import StudyCounts
from spearmint.drivers import Job, JobRequest
from spearmint.fidelity import Fidelity
from spearmint.layout import read_json
from spearmint.model import Trial, TrialState
from spearmint.requests.inbox import Action, Inbox, Request
from tests.spearmint.controller.batch_fakes import Batches, states


def test_a_job_has_as_many_trials_as_are_still_wanted(make_loop) -> None:
    driver = Batches()
    figures = make_loop(driver, batch=4, finished=10).run()
    assert (figures.complete, figures.running) == (10, 0)
    assert driver.sizes == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert driver.most == 1


def test_concurrent_counts_jobs(make_loop) -> None:
    driver = Batches()
    make_loop(driver, batch=4, finished=16, concurrent=2).run()
    assert driver.sizes[:2] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert driver.most == 2


def test_results_arrive_while_the_job_trains_others(make_loop) -> None:
    driver = Batches({2: ["stay", "stay", "stay", 0.5]})
    search = make_loop(driver, batch=3, finished=3)
    running: list[tuple[int, int]] = []

    def note(trial: Trial, counts: StudyCounts) -> None:
        running.append((trial.id, len(driver.ended)))

    search.observer.ended = note
    search.run()
    assert running == [(1, 0), (3, 0), (2, 1)], "two were stored before the job ended"


def test_a_job_that_trains_others_is_not_ended(make_loop, monkeypatch) -> None:
    monkeypatch.setattr(ending, "EXIT_GRACE_S", 0.0)
    driver = Batches({2: ["stay"] * 8 + [0.5]})
    search = make_loop(driver, batch=2, finished=2)
    search.run()
    assert driver.sizes == [[1, 2]]
    assert search.study.trials()[1].lost == 0


def test_one_that_fails_breaks_alone(make_loop) -> None:
    search = make_loop(Batches({2: ["diverged"]}), batch=3, finished=2)
    search.run()
    first, second, third = search.study.trials()
    assert (first.state, third.state) == (TrialState.COMPLETE, TrialState.COMPLETE)
    assert (second.state, second.reason) == (TrialState.BROKEN, "diverged")


def test_trials_of_a_lost_job_without_a_result_are_retried_alone(make_loop) -> None:
    """One of them may be what ended the job; it must not end the others again."""
    driver = Batches({2: [None, None], 3: [None, 0.5]})
    search = make_loop(driver, batch=4, finished=4)
    search.run()
    assert driver.sizes == [[1, 2, 3, 4], [2], [3], [5]]
    trials = {trial.id: trial for trial in search.study.trials()}
    assert trials[2].reason == "vanished, 2 times"
    assert (trials[3].value, trials[3].lost) == (0.5, 1)
    assert trials[1].lost == trials[4].lost == 0
    assert driver.explained == 2, "the driver is asked once for each job"


@pytest.mark.parametrize("first", [[None, None, 1.0], [None, 1.0]])
def test_an_ended_trial_keeps_no_copy_of_its_files_in_the_folders_of_its_jobs(
    first, make_loop
) -> None:
    class Saves(Batches):
        def step(self, job: Job, trial_id: int) -> bool:
            files = self.folder_of(job, trial_id).files
            files.mkdir(exist_ok=True)
            (files / "model").write_text("weights")
            return super().step(job, trial_id)

    driver = Saves({1: list(first), 2: [None, None, 2.0]})
    make_loop(driver, batch=2, finished=2, max_retries=2).run()
    assert driver.sizes == [[1, 2], [1, 2], *([[1]] if len(first) > 2 else []), [2]]
    copies = [path for job in driver.folders.values() for path in job.files.rglob("model")]
    assert copies == []


def test_with_more_retries_only_the_last_one_is_alone(make_loop) -> None:
    driver = Batches({1: [None, None, 1.0], 2: [None, None, 2.0]})
    make_loop(driver, batch=2, finished=2, max_retries=2).run()
    assert driver.sizes == [[1, 2], [1, 2], [1], [2]]


def test_a_killed_controller_stored_what_had_ended_and_the_next_one_adopts_the_job(
    make_loop,
) -> None:
    driver = Batches({1: [0.25], 2: ["stay"] * 5 + [0.5], 3: [0.75]})
    search = make_loop(driver, batch=3, finished=3)
    study = search.controller.studies[0]
    study.resume()
    study.start_job()
    driver.wait(study.jobs, 0.0)
    study.collect(driver.poll(study.jobs))
    assert states(search.study.trials())[1] is TrialState.COMPLETE
    assert study.n_jobs == study.n_running == 1
    again = make_loop(driver, batch=3, finished=3)
    figures = again.run()
    assert (figures.complete, figures.broken) == (3, 0)
    assert driver.sizes == [[1, 2, 3]], "nothing ran twice"


def test_a_controller_killed_before_the_submission_starts_the_same_trials(make_loop) -> None:
    search = make_loop(Batches(), batch=3, finished=3)
    study = search.controller.studies[0]
    study.resume()
    study._next.of_a_job(1, {})
    driver = Batches()
    make_loop(driver, batch=3, finished=3).run()
    assert driver.sizes == [[1, 2, 3]]


def test_a_trial_that_left_its_job_does_not_adopt_a_later_one_of_the_same_name(make_loop) -> None:
    """The folder of a job is named by its first trial, which can be alone in the next one."""
    driver = Batches({1: [None, "stay", "stay", 0.5], 2: [None, 0.25]})
    search = make_loop(driver, batch=2, finished=2)
    study = search.controller.studies[0]
    study.resume()
    study.start_job()
    driver.wait(study.jobs, 0.0)
    study.collect(driver.poll(study.jobs))
    study.start_job()  # of trial 1 alone; trial 2 waits when the controller is killed
    again = make_loop(driver, batch=2, finished=2, concurrent=2)
    assert again.run().complete == 2
    assert driver.sizes == [[1, 2], [1], [2]]


def test_ctrl_c_keeps_the_values_that_exist_and_reruns_the_others_together(make_loop) -> None:
    driver = Batches({1: [0.5], 2: ["stay"], 3: ["stay"]})
    search = make_loop(driver, batch=3, finished=3)
    study = search.controller.studies[0]
    study.resume()
    study.start_job()
    driver.wait(study.jobs, 0.0)
    study.end_running()
    assert states(search.study.trials()) == {
        1: TrialState.COMPLETE,
        2: TrialState.RUNNING,
        3: TrialState.RUNNING,
    }
    driver.outcomes.clear()
    make_loop(driver, batch=3, finished=3).run()
    assert driver.sizes == [[1, 2, 3], [2, 3]]


class Reports(Batches):
    """Trial N reports N in each step, and ends with its value after four steps."""

    def step(self, job: Job, trial_id: int) -> bool:
        folder = self.folder_of(job, trial_id)
        if folder.result.exists() or folder.stop.exists():
            return False
        with folder.reports.open("a") as file:
            step = folder.reports.read_text().count("\n")
            file.write(f"{step},{trial_id}\n")
        if step == 3:
            self.write(folder, {"value": float(trial_id), "seconds": 1.0})
        return step < 3


def test_pruned_trials_stop_alone(make_loop) -> None:
    driver = Reports()
    pruner = MedianPruner(n_startup_trials=2, n_warmup_steps=1)
    search = make_loop(driver, batch=2, finished=4, pruner=pruner)
    figures = search.run()
    assert (figures.complete, figures.pruned, figures.broken) == (2, 2, 0)
    for trial in search.study.trials()[2:]:
        assert trial.state is TrialState.PRUNED
        assert trial.reports == {0: trial.id, 1: trial.id}
        assert search.layout.folder(trial.id).stop.exists()
    assert driver.sizes == [[1, 2], [3, 4]]


def test_a_user_stops_one_trial_and_the_others_go_on(make_loop, tmp_path) -> None:
    driver = Batches({1: ["stay"] * 1000, 2: ["stay"] * 4 + [0.5]})
    search = make_loop(driver, batch=2, finished=1)
    submit = driver.submit

    def then_stop(request: JobRequest) -> Job:
        stop = Request(action=Action.STOP, trials=(1,), reason="stopped by me")
        Inbox(search.layout).put(stop)
        return submit(request)

    driver.submit = then_stop
    search.run()
    first, second = search.study.trials()
    assert (first.state, first.reason) == (TrialState.BROKEN, "stopped by me")
    assert second.value == 0.5
    assert first.lost == second.lost == 0


def test_a_timeout_ends_the_job_and_keeps_the_results_that_exist(make_loop) -> None:
    driver = Batches({1: [0.5], 2: ["stay"] * 1000, 3: ["stay"] * 1000})
    search = make_loop(driver, batch=3, finished=2, timeout=0.2)
    del driver.outcomes[1][:]
    search.run()
    trials = {trial.id: trial for trial in search.study.trials()}
    assert trials[1].state is TrialState.COMPLETE
    assert {trials[2].reason, trials[3].reason} == {"timed out after 0.2 s"}


class Rungs(Batches):
    """Each part of trial N ends with N + 1 / steps; the first of a job trains longest."""

    def step(self, job: Job, trial_id: int) -> bool:
        folder = self.folder_of(job, trial_id)
        if folder.result.exists():
            return False
        until = read_json(folder.spec)["steps"][1]
        waits = self.outcomes.setdefault(trial_id, ["stay", "stay"] if trial_id % 3 == 1 else [])
        if waits:
            waits.pop()
            return True
        self.write(folder, {"value": trial_id + 1 / until, "seconds": 1.0})
        return False


def test_trials_pause_at_rungs_and_resume_after_their_job_has_ended(make_loop) -> None:
    rungs = Fidelity(name="epochs", low=1, high=9, reduction=3)
    driver = Rungs({1: ["stay"] * 30})  # its job runs while others make trial 2 one to resume
    search = make_loop(driver, batch=3, finished=9, fidelity=rungs, concurrent=2)
    figures = search.run()
    assert (figures.complete, figures.paused, figures.running) == (1, 8, 0)
    assert sum(map(len, driver.sizes)) == 9 + 3 + 1


def test_the_log_and_the_folder_of_a_job_are_found_from_each_trial(make_loop) -> None:
    driver = Batches({2: [None, 0.5]})
    search = make_loop(driver, batch=2, finished=4)
    search.run()
    layout = search.layout
    assert layout.log(1) == layout.output(1)
    assert layout.log(2) == layout.output(2), "its last job had no other trial"
    assert layout.log(4) == layout.output(3)
    assert layout.job(4).path == layout.batches / "00000003"
