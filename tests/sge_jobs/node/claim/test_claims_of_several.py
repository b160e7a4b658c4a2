"""Several GPUs are claimed at once or not at all, whoever is killed, and when."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sge_jobs.node.claim.lock_files import LockFiles
from sge_jobs.node.claim.locks import Held, Locks
from sge_jobs.node.claim.record import Record
from sge_jobs.node.claim.run_directory import LockError
from tests.sge_jobs.node.claim.shepherds import kill, record, shepherd
from tests.sge_jobs.node.claim.test_assignment import FakeCell

UUIDS = [f"GPU-{place}" for place in range(6)]


@pytest.fixture
def directory(tmp_path: Path) -> str:
    (tmp_path / "run").mkdir(mode=0o755)
    return str(tmp_path / "run" / "locks")


@pytest.fixture
def cell(tmp_path: Path, children: list[int], monkeypatch: pytest.MonkeyPatch) -> FakeCell:
    cell = FakeCell(tmp_path / "a host", children)
    monkeypatch.setenv("PATH", f"{cell.path}:/usr/bin:/bin")
    return cell


def claim(directory: str, wanted: int, mine: Record) -> list[str]:
    with Held(Locks(directory, "boot"), 60) as locks:
        return locks.claim(wanted, UUIDS, mine)[0]


def holders(directory: str) -> dict[str, str]:
    """Return the job of each GPU that a job has."""
    with Held(Locks(directory, "boot"), 60) as locks:
        states = locks.survey(UUIDS)
    return {state.uuid: state.record.job for state in states if state.record}


def killed_at(write: int, length: int, act: Callable[[], object]) -> bool:
    """Call ``act`` in a child, killed after ``length`` bytes of its write number ``write``.

    Returns:
        Whether it was killed; otherwise it needed fewer writes.
    """
    pid = os.fork()
    if pid == 0:
        real, left = os.pwrite, [write]

        def pwrite(descriptor: int, data: bytes, offset: int) -> int:
            left[0] -= 1
            if left[0] < 0:
                real(descriptor, data[:length], offset)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(descriptor, data, offset)

        code = 1
        try:
            os.pwrite = pwrite
            act()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status in (0, signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize("length", [0, 20, 600, 1 << 20])
def test_a_kill_at_any_instant_leaves_all_or_none(
    directory: str, children: list[int], length: int
) -> None:
    seen = []
    for write in range(20):
        mine, other = (record(shepherd(children), job) for job in (1, 2))
        if not killed_at(write, length, lambda mine=mine: claim(directory, 4, mine)):
            break
        before = holders(directory)
        assert list(before) in ([], UUIDS[:4])
        seen.append(len(before))
        other_gets = [] if before else UUIDS[:4]
        assert claim(directory, 4, other) == other_gets
        kill(other.shepherd)
        assert claim(directory, 4, mine) == UUIDS[:4]  # the next attendant
        assert set(holders(directory).values()) == {"1"}
        kill(mine.shepherd)
        assert holders(directory) == {}
    assert write == 6  # the intent, four files, its end
    assert seen[:4] == [0] * 4


def test_jobs_that_want_more_than_half_never_block_each_other(
    directory: str, children: list[int]
) -> None:
    draw = random.Random(7)
    waiting = {job: record(shepherd(children), job) for job in range(12)}
    while waiting:
        job = draw.choice(list(waiting))
        claims = [waiting[job], waiting[draw.choice(list(waiting))]]
        for mine in claims:  # of two jobs, one of which dies in the middle
            killed_at(
                draw.randrange(8), draw.choice([0, 600]), lambda m=mine: claim(directory, 4, m)
            )
            held = holders(directory)
            assert len(held) in (0, 4)
            assert len(set(held.values())) <= 1
        for owner in set(holders(directory).values()):
            kill(waiting.pop(int(owner)).shepherd)
    assert holders(directory) == {}


def test_a_kill_while_a_claim_is_undone_leaves_none(directory: str, children: list[int]) -> None:
    mine = record(shepherd(children))
    for write in range(4):
        assert killed_at(4, 600, lambda: claim(directory, 4, mine))
        for _ in range(2):
            killed_at(write, 0, lambda: holders(directory))
        assert holders(directory) == {}


def test_a_share_of_a_killed_claim_remains(directory: str, children: list[int]) -> None:
    """Undoing removes the new record only."""
    first = record(shepherd(children), 5)
    task = record(shepherd(children), 5, parallel="1.node")
    assert claim(directory, 3, first) == UUIDS[:3]

    def join() -> None:
        with Held(Locks(directory, "boot"), 60) as locks:
            locks.join(UUIDS, task)

    assert killed_at(2, 1 << 20, join)
    with Held(Locks(directory, "boot"), 60) as locks:
        assert [one.parallel for uuid in UUIDS for one in locks.read(uuid)] == [""] * 3
        assert locks.join(UUIDS, task) == UUIDS[:3]
        assert [len(locks.read(uuid)) for uuid in UUIDS] == [2] * 3 + [0] * 3


def test_a_file_that_cannot_be_written_leaves_none(
    directory: str, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, real = record(shepherd(children)), LockFiles.write

    def write(files: LockFiles, name: str, records: Sequence[Record]) -> None:
        if name == "GPU-2" and records:
            raise LockError("GPU-2: input/output error")
        real(files, name, records)

    monkeypatch.setattr(LockFiles, "write", write)
    with pytest.raises(LockError, match="GPU-2"):
        claim(directory, 4, mine)
    monkeypatch.undo()
    with Held(Locks(directory, "boot"), 60) as locks:
        assert [locks.read(uuid) for uuid in UUIDS] == [[]] * 6


@pytest.mark.parametrize(
    "text", [b"", b"\xff" * 9000, *(b"sge_jobs claim 1\n" + rest for rest in
             (b"1 2\nGPU-0\n", b"end\n", b"\n../x\nend\n"))],
)  # fmt: skip
def test_a_damaged_file_of_claims_stops_nobody(
    directory: str, children: list[int], text: bytes
) -> None:
    Locks(directory, "boot").close()
    (Path(directory) / "claims").write_bytes(text)
    mine = record(shepherd(children))
    assert claim(directory, 4, mine) == UUIDS[:4]
    assert len(holders(directory)) == 4


def test_one_gpu_is_claimed_by_one_write(directory: str, children: list[int]) -> None:
    mine = record(shepherd(children))
    assert killed_at(0, 1 << 20, lambda: claim(directory, 1, mine))
    assert holders(directory) == {"GPU-0": "1"}


@pytest.mark.parametrize("write", range(6))
def test_the_next_attendant_gives_a_job_all_its_gpus(cell: FakeCell, write: int) -> None:
    cell.gpus(*UUIDS)
    spool = cell.job("12.1", "gpu=4")
    assert killed_at(write, 1 << 20, cell.attendant.attend)
    cell.attendant = cell.started()
    other = cell.job("13.1", "gpu=4")
    answers = [cell.answer(one) for one in (spool, other)]
    assert sorted((answer.code, len(answer.gpus)) for answer in answers) == [(0, 4), (99, 0)]


def test_the_next_attendant_gives_a_parallel_task_all_its_gpus(cell: FakeCell) -> None:
    cell.gpus(*UUIDS, per_slot=True)
    (cell.path / "active_jobs" / "12.1").mkdir()  # the job itself runs on another host
    task = cell.job("12.1/1.node", "gpu=2", parallel=True, config="host_slots=2\n")
    assert killed_at(2, 1 << 20, cell.attendant.attend)
    cell.attendant = cell.started()
    other = cell.job("12.1/2.node", "gpu=2", parallel=True, config="host_slots=2\n")
    assert cell.answer(task).gpus == cell.answer(other).gpus == UUIDS[:4]


def test_linked_gpus_are_chosen_and_listed_side_by_side(cell: FakeCell) -> None:
    cell.gpus(*UUIDS, islands=("024", "135"))
    assert cell.given("11.1", "gpu=1") == ["GPU-0"]
    assert cell.given("12.1", "gpu=2") == ["GPU-2", "GPU-4"]
    cell.end(cell.path / "active_jobs" / "11.1")
    spool = cell.job("13.1", "gpu=4")
    assert cell.answer(spool).gpus == ["GPU-0", "GPU-1", "GPU-3", "GPU-5"]
    (spool / "sge_jobs").unlink()
    cell.attendant = cell.started()
    assert cell.answer(spool).gpus == ["GPU-0", "GPU-1", "GPU-3", "GPU-5"]


def test_a_parallel_task_sees_the_gpus_in_the_order_of_its_job(cell: FakeCell) -> None:
    cell.gpus(*UUIDS, islands=("024", "135"))
    first = cell.job("12.1", "gpu=6", parallel=True)
    task = cell.job("12.1/1.node", "gpu=6", parallel=True)
    assert cell.answer(first).gpus == ["GPU-0", "GPU-2", "GPU-4", "GPU-1", "GPU-3", "GPU-5"]
    assert cell.answer(task).gpus == cell.answer(first).gpus


def test_a_share_of_a_gpu_leaves_the_larger_island_whole(cell: FakeCell) -> None:
    with Held(Locks(cell.settings.locks, "boot"), 60) as locks:
        mine = record(shepherd(cell.children), share=300)
        cell.gpus(*UUIDS, islands=("0123", "45"))
        assert locks.claim(1, UUIDS, mine, cell.links)[0] == ["GPU-4"]


def test_claims_at_once_of_the_same_job_are_one_claim(directory: str, children: list[int]) -> None:
    mine = record(shepherd(children))
    pids = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                time.sleep(0.01)
                code = 0 if claim(directory, 4, mine) == UUIDS[:4] else 2
            finally:
                os._exit(code)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 8
