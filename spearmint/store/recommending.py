"""The trial to use: by the model's expected value where there is noise, else the best value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import optuna

from spearmint.choosers.recommendation import Estimate, recommend
from spearmint.choosers.tree import Tree
from spearmint.model import Experiment, Trial
from spearmint.store.errors import wraps_storage_errors
from spearmint.store.frozen_trials import to_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The trial to use, and the one with the best value.

    Attributes:
        trial: The recommended trial.
        luckiest: The trial with the best value; often the same.
        expected: What the model expects of ``trial``; None if it finds no noise.
        luckiest_expected: What the model expects of ``luckiest``; None if it finds no noise.
    """

    trial: Trial
    luckiest: Trial
    expected: Estimate | None = None
    luckiest_expected: Estimate | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the recommended trial as data for ``--json``, with ``model`` if there is noise."""
        fields = self.trial.to_json()
        if self.expected is None or self.luckiest_expected is None:
            return fields
        luckiest = {
            "id": self.luckiest.id,
            "value": self.luckiest.value,
            "expected": self.luckiest_expected.expected,
            "sd": self.luckiest_expected.sd,
        }
        estimate = self.expected
        return fields | {
            "model": {
                "expected": estimate.expected,
                "sd": estimate.sd,
                "noise_sd": estimate.noise_sd,
                "trials": estimate.trials,
                "mean": estimate.mean,
                "best_value": luckiest,
            }
        }


class Recommending:
    """The method of :class:`spearmint.store.study.Study` that recommends a trial."""

    experiment: Experiment
    _study: optuna.Study
    _tree: Tree | None

    def best(self, most: int | None = 1) -> list[Trial]:
        """Return at most ``most`` complete trials, best first."""
        raise NotImplementedError

    def at_highest_rung(self, most: int | None = 1) -> list[Trial]:
        """Return at most ``most`` trials of the highest rung that any reached, best first."""
        raise NotImplementedError

    @wraps_storage_errors()
    def recommended(self) -> Recommendation | None:
        """Return the trial to use; None if no trial is complete, or with several objectives.

        If trials pause at rungs and none is complete, it is the best of the highest rung reached.
        """
        if self.experiment.has_front:
            return None
        best = self.best()
        if not best:
            paused = self.at_highest_rung()
            return Recommendation(trial=paused[0], luckiest=paused[0]) if paused else None
        found = recommend(self._study, tree=self._tree)
        if found is None or found[1].number != best[0].id - 1:
            return Recommendation(trial=best[0], luckiest=best[0])
        expected, luckiest = found
        trial = best[0]
        if expected.number != luckiest.number:
            storage, study_id = self._study._storage, self._study._study_id
            key = storage.get_trial_id_from_study_id_trial_number(study_id, expected.number)
            trial = to_trial(self.experiment, storage.get_trial(key))
        return Recommendation(
            trial=trial, luckiest=best[0], expected=expected, luckiest_expected=luckiest
        )
