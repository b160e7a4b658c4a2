"""Limits of a whole search and of each study."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Limits of all regions together.

    Attributes:
        concurrent: Number of trials that run at the same time.
        follows_capacity: Whether ``concurrent`` follows the capacity of the driver.
        queue_ahead: Additional trials in the queue, so that no GPU waits for a proposal.
        waits: Whether to wait if the queue can never run the trials, as it is configured now.
        polling_s: Longest time between two polls of the driver, in seconds.
        time_s: Seconds after which no more trials start.
        trial_time_s: Total seconds of all trials after which no more trials start.
        warm_start: Number of points of finished studies that a new study tries first. Above 0, at
            most ``concurrent`` studies are open at the same time.
        then_final: Whether to train the best trial of each study that is done.
    """

    concurrent: int = 1
    follows_capacity: bool = False
    queue_ahead: int = 0
    waits: bool = False
    polling_s: float = 3.0
    time_s: float | None = None
    trial_time_s: float | None = None
    warm_start: int = 0
    then_final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLimits:
    """Limits of one study.

    Attributes:
        finished: Number of complete and pruned trials, including earlier runs.
        broken: The study fails if the first ``broken`` trials all fail, or later ten times as many
            in a row.
        patience: Complete or pruned trials in a row without a better value; None for no limit.
        target: Value at which to stop; None for no target.
    """

    finished: int = 10000
    broken: int = 5
    patience: int | None = None
    target: float | None = None
