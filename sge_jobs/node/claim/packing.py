"""Choose the GPU of which a job gets a share.

Jobs of different users never share a GPU, and nobody shares a GPU that a job has for itself.
"""

from __future__ import annotations

from sge_jobs.node.claim.record import WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sge_jobs.node.claim.lock_state import LockState
    from sge_jobs.node.claim.record import Record


def has_room(state: LockState, mine: Record) -> bool:
    """Whether the job ``mine`` can have its share of a GPU, or the whole of it."""
    if state.free:
        return True
    same = all(record.user == mine.user and record.share < WHOLE for record in state.running)
    return same and mine.share < WHOLE and state.unused >= mine.share


def choose(states: Iterable[LockState], mine: Record) -> LockState | None:
    """Return the GPU of which ``mine`` gets its share; None if none has room.

    The fullest GPU with room is chosen, so that others stay free for jobs that need a whole one.
    """
    fitting = [state for state in states if has_room(state, mine)]
    return min(fitting, key=lambda state: state.unused, default=None)
