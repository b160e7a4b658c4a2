"""Decide by dollars whether a trial can start and when a search must end; no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spearmint.budget.durations import Durations
from spearmint.budget.meter import Meter, Reading

END_S = 60.0
"""Seconds that are kept to end the trials and the nodes."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running trial: its seconds so far, and the durations of its study."""

    seconds: float
    durations: Durations

    def left_s(self) -> float:
        """Return the seconds until it probably ends."""
        return max((self.durations.longest() or 0.0) - self.seconds, 0.0)


@dataclass(slots=True)
class Budget:
    """Dollars that a search can cost.

    All nodes cost until the last trial ends. A trial therefore starts only if there are dollars
    for all of them until it and the running trials have probably ended.

    Attributes:
        limit: Dollars.
        polling_s: Seconds between two decisions.
    """

    limit: float
    meter: Meter
    polling_s: float = 3.0

    def refusal(
        self, durations: Durations, running: Iterable[Running], *, and_final: bool = False
    ) -> str:
        """Return why no trial can start now; empty if one can.

        Args:
            durations: Of the study of the new trial.
            running: The trials that run.
            and_final: Also reserve the time of a final training, as long as a trial.
        """
        now = self.meter.read()
        if now.doubt:
            return now.doubt
        trials = list(running)
        # Until a trial has ended, a new one probably takes as long as the running ones already do.
        own_s = durations.longest() or max((trial.seconds for trial in trials), default=0.0)
        left_s = max([own_s, *(trial.left_s() for trial in trials)]) + own_s * and_final
        reserve = now.per_hour * (left_s + END_S + self.polling_s) / 3600
        if now.spent + reserve <= self.limit:
            return ""
        return (
            f"the budget of ${self.limit:.2f} has room for the running trials only: "
            f"${now.spent:.2f} are spent, ${reserve:.2f} would be reserved until the trial ends"
        )

    def is_spent(self) -> Reading | None:
        """Return the dollars if the trials must end now, to stay within the limit; else None."""
        now = self.meter.read()
        reserve = now.per_hour * (END_S + self.polling_s) / 3600
        return now if now.spent + reserve > self.limit else None

    def summary(self) -> str:
        """Return what was spent, as a sentence."""
        now = self.meter.read()
        return f"Spent: ${now.spent:.2f} of the budget of ${self.limit:.2f} for all nodes"
