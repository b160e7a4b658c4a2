"""Choose the trial whose parameters the final model gets."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from spearmint.errors import InputError, next_command
from spearmint.layout import Layout
from spearmint.model import Experiment, Trial
from spearmint.store.study import Study


@dataclass(frozen=True, slots=True)
class Choice:
    """A trial, and how it was chosen.

    ``how`` is ``best value``, ``best expected value``, ``median of 5`` or ``named``.
    """

    trial: Trial
    how: str

    def identity(self, study: Study) -> str:
        """Return a digest of the study, the trial and its parameters.

        Two trainings with the same identity would train the same model.
        """
        content = json.dumps([study.key(self.trial), "final"])
        return hashlib.sha256(content.encode()).hexdigest()


def choose(study: Study, layout: Layout, *, number: int = 0, median_of: int = 0) -> Choice:
    """Return the recommended trial, or the one that the arguments name.

    If values are noisy, the recommended trial is that with the best expected value by a model of
    all trials, as in ``spearmint best``.

    Args:
        study: The trials.
        layout: Paths of the search, for messages.
        number: Number of a complete trial; 0 for none.
        median_of: Take the trial with the median value of this many best ones, the better of two.
            0 for none.

    Raises:
        InputError: No such trial is complete and feasible, or the search has several objectives.
    """
    require_best(study.experiment)
    if number:
        trial = study.find(number)
        if trial is None or trial.value is None:
            raise InputError(
                f"trial {number} is not complete",
                f"Show it: {next_command('show', layout.root, number)}",
            )
        return Choice(trial, "named")
    found, best = study.recommended(), study.best(median_of or 1)
    if found is None or not best:
        state = "feasible" if study.best(feasible=False) else "complete"
        raise InputError(
            f"no trial of {study.experiment.study_name!r} is {state} yet",
            f"Run the search: {next_command(layout.root)}",
        )
    if not median_of:
        noisy = found.expected is not None
        return Choice(found.trial, "best expected value" if noisy else "best value")
    return Choice(best[(len(best) - 1) // 2], f"median of {len(best)}")


def require_best(experiment: Experiment) -> None:
    """Raise InputError if the search has several objectives, so that no trial is the best."""
    if experiment.has_front:
        raise InputError(
            f"{experiment.path} has several objectives, so that no trial is the best",
            "Choose a trial of the front, and train it with a script.",
        )
