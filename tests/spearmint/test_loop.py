"""The loop against a driver in memory: order, limits, retries, faults of the queue."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler

from spearmint.drivers import Driver, Job, JobRequest, JobState
from spearmint.errors import DriverError, SearchFailed
from spearmint.layout import Layout, TrialFolder, read_json, write_json
from spearmint.loop import Limits, Loop
from spearmint.model import Experiment, Kind, Language, Trial, TrialState, Variable
from spearmint.records import Records
from spearmint.sqlite import sqlite_url
from spearmint.studies import open_studies
from spearmint.study_loop import Progress, StudyLimits, StudyLoop


class FakeDriver(Driver):
    """Holds jobs; ``outcomes`` tells per trial what each next job of it does.

    An outcome is a value, a reason (str), None for a job that vanishes, or "stay".
    """

    name: ClassVar[str] = "fake"

    def __init__(self, outcomes: Mapping[int, list[object]] | None = None) -> None:
        self.outcomes = dict(outcomes or {})
        self.folders: dict[Job, TrialFolder] = {}
        self.ended: set[Job] = set()
        self.most = 0
        self.polls_fail = False

    def submit(self, request: JobRequest) -> Job:
        job = Job("fake", f"{request.name}.{len(self.folders)}")
        self.folders[job] = request.folder
        return job

    def adopt(self, folder: TrialFolder) -> Job | None:
        living = self.folders.items()
        return next((job for job, at in living if at == folder and job not in self.ended), None)

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        if self.polls_fail:
            raise DriverError("the queue does not answer")
        self.most = max(self.most, len(jobs))
        return {job: JobState.GONE if job in self.ended else JobState.ALIVE for job in jobs}

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        for job in jobs:
            trial_id = int(self.folders[job].path.name)
            plan = self.outcomes.get(trial_id, [])
            outcome = plan.pop(0) if plan else float(trial_id)
            if outcome == "stay":
                plan.insert(0, "stay")
                continue
            if isinstance(outcome, float):
                self.leave(job, {"value": outcome, "seconds": 1.0})
            elif isinstance(outcome, str):
                self.leave(job, {"reason": outcome})
            self.ended.add(job)

    def leave(self, job: Job, result: dict[str, object]) -> None:
        """Write a result as the runner does."""
        folder = self.folders[job]
        write_json(folder.result, {**result, "key": read_json(folder.spec)["key"]})

    def cancel(self, jobs: Collection[Job]) -> None:
        self.ended.update(jobs)

    def explain(self, job: Job) -> str:
        return "vanished"


class Notes:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ended_: list[Trial] = []

    def submitted(self, trial: Trial, progress: Progress) -> None:
        self.lines.append(f"submitted {trial.id}")

    def ended(self, trial: Trial, progress: Progress) -> None:
        self.ended_.append(trial)

    def note(self, text: str) -> None:
        self.lines.append(text)


class Search:
    """The loop of one experiment; ``run`` returns the figures of its only or its first study."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.studies = [study.study for study in loop.studies]
        self.study, self.layout = self.studies[0], loop.studies[0].layout
        self.driver, self.watcher, self.stop = loop.driver, loop.watcher, loop.stop

    def run(self) -> Progress:
        self.figures = self.loop.run()
        return next(iter(self.figures.values()))


_STUDY_LIMITS = {"finished", "broken", "patience", "target"}


@pytest.fixture
def make_loop(tmp_path: Path):
    def make(
        driver: Driver,
        *,
        maximize: bool = False,
        timeout: float | None = None,
        regions: tuple[str, ...] = (),
        pruner: BasePruner | None = None,
        **limits,
    ) -> Search:
        experiment = Experiment(
            path=tmp_path / "config.pb",
            name="x",
            language=Language.PYTHON,
            variables=(Variable(name="x", kind=Kind.FLOAT, low=0, high=1),),
            maximize=maximize,
            trial_timeout_s=timeout,
            regions=regions,
        )
        url, watcher = sqlite_url(Layout(tmp_path).database), Notes()
        all_limits = {"finished": 3, "polling_s": 0.05, **limits}
        per_study = {k: v for k, v in all_limits.items() if k in _STUDY_LIMITS}
        studies = open_studies(experiment.searches(), url)
        for study in studies:
            study.use(RandomSampler(seed=0), pruner)
        loops = [
            StudyLoop(
                experiment=study.experiment,
                layout=(layout := Layout(tmp_path, study.experiment.region)),
                study=study,
                driver=driver,
                limits=StudyLimits(**per_study),
                records=Records(layout, study.experiment, grid_size=100),
                watcher=watcher,
            )
            for study in studies
        ]
        whole = {k: v for k, v in all_limits.items() if k not in _STUDY_LIMITS}
        return Search(Loop(studies=loops, driver=driver, limits=Limits(**whole), watcher=watcher))

    return make


def test_it_ends_after_enough_complete_trials_broken_ones_not_counted(make_loop) -> None:
    driver = FakeDriver({2: ["no luck"]})
    loop = make_loop(driver, finished=4)
    figures = loop.run()
    assert (figures.complete, figures.broken, figures.running) == (4, 1, 0)
    assert figures.best.id == 1
    broken = next(t for t in loop.watcher.ended_ if t.state is TrialState.BROKEN)
    assert broken.reason == "no luck"


def test_it_fills_at_once_and_never_runs_more(make_loop) -> None:
    driver = FakeDriver()
    loop = make_loop(driver, finished=10, concurrent=4)
    loop.run()
    assert loop.watcher.lines[:4] == [f"submitted {i}" for i in (1, 2, 3, 4)]
    assert driver.most == 4
    assert len(driver.folders) == 10, "no more trials than were asked for"


def test_maximum(make_loop) -> None:
    loop = make_loop(FakeDriver(), finished=3, maximize=True)
    assert loop.run().best.id == 3


def test_a_vanished_job_runs_again_up_to_the_limit(make_loop) -> None:
    driver = FakeDriver({1: [None, 0.5], 2: [None, None]})
    loop = make_loop(driver, finished=2)
    figures = loop.run()
    assert (figures.complete, figures.broken) == (2, 1)
    rows = {trial.id: trial for trial in loop.study.trials()}
    assert (rows[1].value, rows[1].lost) == (0.5, 1)
    assert rows[2].reason == "vanished, 2 times"


def test_a_poll_that_fails_changes_no_trial(make_loop) -> None:
    driver = FakeDriver({1: ["stay"]})
    loop = make_loop(driver)
    driver.polls_fail = True
    with pytest.raises(DriverError):
        loop.run()
    driver.polls_fail = False
    driver.outcomes.clear()
    again = make_loop(driver, finished=1)
    assert again.run().complete == 1
    assert len(driver.folders) == 1, "the living job was adopted"


def test_a_result_that_was_not_stored_is_stored_on_resume(make_loop) -> None:
    loop = make_loop(FakeDriver())
    trial = loop.study.ask()
    folder = loop.layout.folder(trial.id)
    folder.path.mkdir(parents=True)
    key = loop.study.key(trial)
    write_json(folder.result, {"value": 0.125, "seconds": 3.0, "key": key})
    driver = FakeDriver()
    figures = make_loop(driver, finished=1).run()
    assert (figures.complete, figures.best.value) == (1, 0.125)
    assert not driver.folders, "nothing ran again"


def test_a_trial_without_a_job_is_started_on_resume(make_loop) -> None:
    trial = make_loop(FakeDriver()).study.ask()
    loop = make_loop(FakeDriver(), finished=1)
    loop.run()
    spec = read_json(loop.layout.folder(trial.id).spec)
    assert spec["params"]["x"]["values"] == list(trial.params["x"])
    assert [t.id for t in loop.study.trials()] == [trial.id]
    assert loop.study.trials()[0].lost == 0


def test_a_torn_result_counts_as_none(make_loop) -> None:
    loop = make_loop(FakeDriver())
    trial = loop.study.ask()
    folder = loop.layout.folder(trial.id)
    folder.path.mkdir(parents=True)
    folder.result.write_text('{"value": 0.')
    assert make_loop(FakeDriver(), finished=1).run().best.value == 1.0


@pytest.mark.parametrize("left", [{"loss": 1}, [1], {"value": 0.5, "key": "another"}, {"value": 1}])
def test_a_file_that_no_runner_wrote_counts_as_none(make_loop, left: object) -> None:
    loop = make_loop(FakeDriver())
    trial = loop.study.ask()
    folder = loop.layout.folder(trial.id)
    folder.path.mkdir(parents=True)
    write_json(folder.result, left)
    driver = FakeDriver()
    assert make_loop(driver, finished=1).run().best.value == 1.0
    assert len(driver.folders) == 1, "it ran"


def test_interrupted_trials_start_again_within_the_limits(make_loop) -> None:
    study = make_loop(FakeDriver()).study
    asked = [study.ask() for _ in range(4)]
    driver = FakeDriver()
    figures = make_loop(driver, finished=2, concurrent=1).run()
    assert driver.most == 1
    assert (figures.complete, len(driver.folders)) == (2, 2)
    assert [trial.id for trial in study.running()] == [trial.id for trial in asked[2:]]


def test_a_job_that_we_ended_is_not_a_broken_trial(make_loop) -> None:
    class SaysGoodbye(FakeDriver):
        def cancel(self, jobs: Collection[Job]) -> None:
            for job in set(jobs) - self.ended:
                self.leave(job, {"reason": "called sys.exit(143)"})
            super().cancel(jobs)

    loop = make_loop(SaysGoodbye({1: ["stay"]}), finished=1, timeout=0.1)
    loop.run()
    assert loop.study.trials()[0].reason == "ran past the time limit of 0.1 s"
    stopped = make_loop(SaysGoodbye({3: ["stay"]}), finished=2)
    stopped.driver.wait = lambda jobs, timeout_s: setattr(stopped.stop, "now", True)
    stopped.run()
    assert [trial.id for trial in stopped.study.running()] == [3]
    assert make_loop(FakeDriver(), finished=2).run().complete == 2


def test_the_first_broken_trials_end_the_search(make_loop) -> None:
    driver = FakeDriver({i: ["typo"] for i in range(1, 50)})
    with pytest.raises(SearchFailed, match="the first 3 trials all broke; the last one, trial 3"):
        make_loop(driver, broken=3).run()
    assert len(driver.folders) == 3


def test_a_success_among_the_first_lets_it_go_on(make_loop) -> None:
    driver = FakeDriver({**{i: ["typo"] for i in range(1, 5)}, 5: [0.5]})
    assert make_loop(driver, broken=5, finished=3).run().complete == 3


def test_broken_trials_in_a_row_end_it_later_too(make_loop) -> None:
    driver = FakeDriver({i: ["typo"] for i in range(2, 99)})
    with pytest.raises(SearchFailed, match="the last 20 trials all broke"):
        make_loop(driver, broken=2).run()


def test_a_trial_past_its_time_is_ended(make_loop) -> None:
    driver = FakeDriver({1: ["stay"]})
    loop = make_loop(driver, finished=1, timeout=0.1)
    loop.run()
    assert loop.study.trials()[0].reason == "ran past the time limit of 0.1 s"


def test_a_result_just_in_time_counts(make_loop) -> None:
    class LastMoment(FakeDriver):
        def cancel(self, jobs: Collection[Job]) -> None:
            for job in jobs:
                self.leave(job, {"value": 0.5})
            super().cancel(jobs)

    figures = make_loop(LastMoment({1: ["stay"]}), finished=1, timeout=0.1).run()
    assert figures.best.value == 0.5


def test_trace_and_best_follow(make_loop, tmp_path: Path) -> None:
    make_loop(FakeDriver(), finished=2).run()
    last = (tmp_path / "trace.csv").read_text().splitlines()[-1]
    assert last.split(",")[1:] == ["1.000000", "1", "98", "0", "2"]
    assert (tmp_path / "best_job_and_result.txt").read_text().startswith("Best result: 1.000000\n")
