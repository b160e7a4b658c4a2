"""SearchLimits of a search: over all regions, and of each study."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """When to stop, and how much to run at once, over all regions.

    Attributes:
        concurrent: Trials that run at once.
        follows_capacity: Whether that changes with the driver's capacity.
        queue_ahead: Trials that wait in the queue beside them, so that no GPU waits for a proposal.
        polling_s: Seconds between two polls of the driver at most.
        time_s: Seconds after which no more trials start.
        trial_time_s: Sum of the seconds of all trials after which no more start.
        warm_start: Points of finished studies that a new one tries first; above 0, no more studies
            are open at once than trials.
    """

    concurrent: int = 1
    follows_capacity: bool = False
    queue_ahead: int = 0
    polling_s: float = 3.0
    time_s: float | None = None
    trial_time_s: float | None = None
    warm_start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLimits:
    """When a study has enough trials.

    Attributes:
        finished: Complete and pruned trials, earlier runs included.
        broken: The study fails when the first ``broken`` trials all break, or ten times as many
            in a row later.
        patience: Complete or pruned trials in a row without a better value; None for any.
        target: A value that is good enough; None for none.
    """

    finished: int = 10000
    broken: int = 5
    patience: int | None = None
    target: float | None = None
