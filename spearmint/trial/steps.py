"""The steps that one part of a trial trains. Imports only the standard library."""

from __future__ import annotations

import os

from spearmint.trial.environment import STEPS_DONE, STEPS_UNTIL


def steps(last: int, after: int = 0) -> range:
    """Return the steps to train now: from ``after`` + 1 to ``last``, or to the next rung.

    In a search with a block ``fidelity``, a trial trains in parts: each ends at a rung, and the
    next one starts in a new process, if there is one. Otherwise this is the whole training.

    Args:
        last: The last step of a full training, such as the number of epochs.
        after: The step of the checkpoint from which the trial continues; 0 without one.
    """
    until = os.environ.get(STEPS_UNTIL)
    return range(after + 1, (last if until is None else min(last, int(until))) + 1)


def export_steps(done: int, until: int) -> None:
    """Set the variables of the part of a trial from step ``done`` to step ``until``."""
    os.environ[STEPS_DONE], os.environ[STEPS_UNTIL] = str(done), str(until)
