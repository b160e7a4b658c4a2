"""Final trainings of regions that are done, while the search of others continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spearmint.controller.study_run import StudyRun
from spearmint.drivers import Job, JobState
from spearmint.errors import InputError, QueueFull
from spearmint.final import FinalTraining, choose
from spearmint.layout import Layout, read_json
from spearmint.model import Experiment
from spearmint.models import ModelStore
from spearmint.store.study import Study


@dataclass(slots=True)
class Finals:
    """Trains the best trial of each study that is done, once, by the driver of the trials.

    Attributes:
        studies: All studies.
        starts: Whether to start trainings (``--then-final``). Jobs of earlier runs are followed in
            any case.
    """

    studies: Sequence[StudyRun]
    starts: bool
    _trainings: list[FinalTraining] = field(init=False)

    def __post_init__(self) -> None:
        self._trainings = [
            FinalTraining(
                experiment=study.experiment,
                layout=study.layout,
                study=study.study,
                driver=study.driver,
                observer=study.observer,
            )
            for study in self.studies
        ]

    @property
    def jobs(self) -> list[Job]:
        """Jobs that have not ended."""
        return [job for training in self._trainings for job in training.jobs]

    @property
    def failures(self) -> list[str]:
        """Why trainings failed, or that they did not start."""
        pairs = zip(self.studies, self._trainings, strict=True)
        missing = [
            f"{study.experiment.study_name}: not trained"
            + (
                ""
                if study.tally.complete
                else ", because no trial is complete: raise --max-finished-jobs"
            )
            for study, training in pairs
            if self.starts and not training.is_over and (study.tally.complete or study.tally.paused)
        ]
        return missing + [training.failure for training in self._trainings if training.failure]

    def resume(self) -> None:
        """Find the jobs that an earlier run submitted."""
        for training in self._trainings:
            if training.unfinished():
                training.adopt()

    def collect(self, states: Mapping[Job, JobState]) -> None:
        """Keep the models of jobs that ended."""
        for training in self._trainings:
            training.collect(states)

    def start(self, room: int, *, limited: bool) -> None:
        """Start trainings of studies that are done, at most ``room`` of them.

        Args:
            room: Number of jobs that may be started.
            limited: Whether a limit of the whole search is reached, so that no trial starts.

        Raises:
            DriverUnreachable: The next call continues.
        """
        if not self.starts:
            return
        for study, training in zip(self.studies, self._trainings, strict=True):
            is_done = bool(study.tally.complete) and not study.is_busy
            is_done = is_done and (limited or not study.wants_trial()) and not study.failure()
            if room <= 0 or not is_done or training.is_over or training.jobs:
                continue
            try:
                choice = choose(study.study, study.layout)
            except InputError as error:  # no trial is feasible; other regions continue
                training.refuse(error.what)
                continue
            training.kept = training.same(choice)
            if training.kept is None:
                try:
                    training.begin(choice)
                except QueueFull:
                    return
                room -= 1

    def end(self) -> None:
        """Terminate the jobs; the next run starts them again."""
        for training in self._trainings:
            training.end()


def has_final(experiment: Experiment, layout: Layout, study: Study) -> bool:
    """Return whether the model of the recommended trial of ``study`` is kept."""
    name = experiment.region or experiment.name
    newest = ModelStore(layout.models / name).versions()[-1:]
    if not newest or study.recommended() is None:
        return False
    known = read_json(newest[0].path / "provenance.json") or {}
    return bool(known.get("identity") == choose(study, layout).identity(study))
