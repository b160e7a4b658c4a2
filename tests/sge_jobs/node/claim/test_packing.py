"""The choice of the GPU of which a job gets a share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.packing import choose
from sge_jobs.node.claim.record import WHOLE, Record


def job(user: str = "alice", share: int = WHOLE, number: int = 1) -> Record:
    return Record(
        job=str(number), user=user, boot="boot", share=share, shepherd=number, shepherd_started=1
    )


def test_the_fullest_gpu_of_the_user_comes_first() -> None:
    states = [
        LockState(uuid="free"),
        LockState(uuid="half", holders=[job(share=500)]),
        LockState(uuid="fuller", holders=[job(share=500), job(share=250, number=2)]),
        LockState(uuid="bob", holders=[job("bob", 100)]),
        LockState(uuid="exclusive", holders=[job()]),
        LockState(uuid="broken", problem="is a directory"),
        LockState(uuid="leftover", holders=[job(share=10)], ended=[job(share=10)]),
    ]
    for wanted, uuid in {250: "fuller", 260: "half", 510: "free", WHOLE: "free"}.items():
        chosen = choose(states, job(share=wanted))
        assert chosen is not None
        assert chosen.uuid == uuid
    assert choose(states[3:], job(share=1)) is None
    assert choose(states[1:], job()) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([10, 250, 330, 990, WHOLE]))))
def test_no_gpu_is_overfull_or_shared_by_two_users(jobs: list[tuple[str, int]]) -> None:
    held: dict[str, list[Record]] = {f"GPU-{i}": [] for i in range(3)}
    for number, (user, share) in enumerate(jobs):
        states = [LockState(uuid=uuid, holders=holders) for uuid, holders in held.items()]
        mine = job(user, share, number)
        chosen = choose(states, mine)
        if chosen is None:
            assert all(held.values())
        else:
            held[chosen.uuid].append(mine)
    for holders in held.values():
        assert sum(one.share for one in holders) <= WHOLE
        assert len({one.user for one in holders}) <= 1
