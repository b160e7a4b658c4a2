"""Keep the MPS daemons of this host in step with the jobs that share its GPUs."""

from __future__ import annotations

from sge_jobs.node.claim.record import WHOLE
from sge_jobs.node.mps import Mps, MpsError, account

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from collections.abc import Set as AbstractSet

    from sge_jobs.node.claim.lock_state import LockState


def end_unused(mps: Mps, states: Iterable[LockState]) -> None:
    """End each daemon that no running job uses. The caller holds the mutex of the locks."""
    known = mps.known()
    if known:
        for uuid, user in known - _needed(states).keys():
            mps.end(uuid, user)


def has_daemon(running: Container[tuple[str, int]], state: LockState) -> bool:
    """Whether each daemon that the jobs on a GPU need is among ``running``."""
    return all(needed in running for needed in _needed([state]))


def start_missing(
    mps: Mps, states: Iterable[LockState], running: AbstractSet[tuple[str, int]]
) -> list[str]:
    """Start the daemons of running jobs that have ended; return a text for each.

    Clients of a daemon that ended have failed. The new daemon serves the next ones.
    """
    needed = _needed(states)
    problems = []
    for uuid, user in needed.keys() - running:
        try:
            mps.start(uuid, user, needed[uuid, user])
        except MpsError as error:
            problems.append(f"cannot start the MPS daemon of user {user} for {uuid}: {error}")
        else:
            problems.append(f"the MPS daemon of user {user} for {uuid} ended, started it again")
    return problems


def _needed(states: Iterable[LockState]) -> dict[tuple[str, int], int]:
    """Return the group ID of each GPU and user with running jobs that have a share."""
    needed = {}
    for state in states:
        for record in state.running:
            if record.share < WHOLE:
                try:
                    user = account(record.user)
                except MpsError:
                    continue
                needed[state.uuid, user.pw_uid] = user.pw_gid
    return needed
