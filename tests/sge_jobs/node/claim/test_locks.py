"""Who has each GPU: real processes, killed at any time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.processes import read_process
from sge_jobs.node.claim.record import Record, encode
from sge_jobs.node.claim.run_directory import LockError
from tests.sge_jobs.node.claim.group_carriers import GROUP, carrier
from tests.sge_jobs.node.claim.shepherds import become_shepherd, fork, kill, record, shepherd

UUIDS = [f"GPU-{place}" for place in range(6)]
needs_root = pytest.mark.root  # only root can give a process a group, or another user


@pytest.fixture
def directory(tmp_path: Path) -> str:
    (tmp_path / "run").mkdir(mode=0o755)
    return str(tmp_path / "run" / "with space")


def claim(
    directory: str, wanted: int, mine: Record, boot: str = "boot"
) -> tuple[list[str], list[LockState]]:
    locks = Locks(directory, boot)
    mutex = locks.mutex(time.monotonic() + 60)
    try:
        assert mutex >= 0
        return locks.claim(wanted, UUIDS, mine)
    finally:
        os.close(mutex)
        locks.close()


def taken(directory: str, wanted: int, mine: Record) -> list[str]:
    return claim(directory, wanted, mine)[0]


def survey(directory: str, boot: str = "boot") -> dict[str, LockState]:
    locks = Locks(directory, boot)
    mutex = locks.mutex(time.monotonic() + 60)
    states = locks.survey(UUIDS)
    os.close(mutex)
    locks.close()
    return {state.uuid: state for state in states}


def test_two_hundred_claims_at_once_never_share_a_gpu(directory: str, tmp_path: Path) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    pids = []
    for number in range(200):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                become_shepherd()
                me = read_process(os.getpid())
                assert me is not None
                wanted = number % 3 + 1
                mine: list[str] = []
                while not mine:
                    mine = taken(directory, wanted, record(me, number))
                    time.sleep(0 if mine else 0.02)
                names = ",".join(mine)
                os.write(log, f"+ {names}\n".encode())
                time.sleep(0.002)
                os.write(log, f"- {names}\n".encode())
                code = 0 if len(mine) == wanted else 1
            finally:
                os._exit(code)
        pids.append(pid)
    for pid in pids:  # a zombie has ended, but some kernels list it until it is reaped
        assert os.waitpid(pid, 0)[1] == 0
    used: set[str] = set()
    lines = (tmp_path / "log").read_text().splitlines()
    for line in lines:
        names = set(line[2:].split(","))
        if line[0] == "+":
            assert not used & names
            used |= names
        else:
            used -= names
    assert len(lines) == 400


def test_all_or_none_are_taken(directory: str, children: list[int]) -> None:
    one, two = record(shepherd(children), 1), record(shepherd(children), 2)
    assert taken(directory, 4, one) == UUIDS[:4]
    mine, states = claim(directory, 3, two)
    assert mine == []
    assert [state.free for state in states] == [False] * 4 + [True] * 2
    assert {state.record.job for state in states if state.record} == {"1"}
    assert taken(directory, 2, two) == UUIDS[4:]


def test_a_job_that_asks_twice_keeps_what_it_has(directory: str, children: list[int]) -> None:
    mine = record(shepherd(children))
    assert taken(directory, 2, mine) == taken(directory, 2, mine) == UUIDS[:2]


def test_kill_frees_at_once_whoever_wrote_the_record(directory: str, children: list[int]) -> None:
    mine = record(shepherd(children))
    kill(fork(children, lambda: taken(directory, 6, mine)))  # as a killed prolog
    assert taken(directory, 1, record(shepherd(children), 2)) == []
    kill(mine.shepherd)
    assert taken(directory, 6, record(shepherd(children), 2)) == UUIDS


def test_a_killed_holder_of_the_mutex_stops_nobody(directory: str, children: list[int]) -> None:
    def hold() -> None:
        assert Locks(directory, "boot").mutex(time.monotonic() + 60) >= 0

    holder = fork(children, hold)
    locks = Locks(directory, "boot")
    assert locks.mutex(time.monotonic() + 0.1) == -1
    kill(holder)
    os.close(locks.mutex(time.monotonic() + 60))
    locks.close()


@needs_root
def test_a_gpu_is_not_given_while_a_process_of_its_job_runs(
    directory: str, children: list[int]
) -> None:
    mine = record(shepherd(children), 7, group=GROUP)
    assert taken(directory, 1, mine) == UUIDS[:1]
    left = carrier(children)
    assert not survey(directory)["GPU-0"].outlived
    kill(mine.shepherd)
    state = survey(directory)["GPU-0"]
    assert state.outlived
    assert [process.pid for process in state.processes] == [left]
    other = record(shepherd(children), 8)
    assert taken(directory, 6, other) == []
    assert taken(directory, 5, other) == UUIDS[1:]
    kill(left)
    assert survey(directory)["GPU-0"].free


@needs_root
def test_the_group_of_an_ended_job_can_be_used_again(directory: str, children: list[int]) -> None:
    first = record(shepherd(children), 7, group=GROUP)
    assert taken(directory, 6, first) == UUIDS
    kill(first.shepherd)

    def job_of_another_shepherd() -> None:
        become_shepherd()
        if os.fork() == 0:
            os.setgroups([GROUP])
            Path("/proc/self/comm").write_text("trainer")
            signal.pause()

    below = fork(children, job_of_another_shepherd)
    known = read_process(below)
    assert known is not None
    assert taken(directory, 6, record(known, 8, group=GROUP)) == UUIDS
    for child in Path(f"/proc/{below}/task/{below}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)


@needs_root
def test_a_process_that_a_user_names_like_a_shepherd_holds_nothing(
    directory: str, children: list[int]
) -> None:
    def pretend() -> None:
        become_shepherd()
        os.setresuid(4321, 4321, 4321)

    pid = fork(children, pretend)
    known = read_process(pid)
    assert known is not None
    assert (known.name, known.is_shepherd) == ("sge_shepherd", False)
    assert taken(directory, 6, record(known)) == UUIDS
    assert taken(directory, 6, record(shepherd(children), 2)) == UUIDS


def test_a_record_of_an_earlier_boot_counts_for_nothing(
    directory: str, children: list[int]
) -> None:
    mine = record(shepherd(children))
    assert taken(directory, 6, mine) == UUIDS
    assert survey(directory, "another")["GPU-0"].free


def test_shares_of_a_gpu_add_up_and_exclude_whole_jobs(directory: str, children: list[int]) -> None:
    shared = [record(shepherd(children), job, share=300) for job in range(4)]
    assert [taken(directory, 1, one) for one in shared] == [UUIDS[:1]] * 3 + [UUIDS[1:2]]
    assert taken(directory, 5, record(shepherd(children), 9)) == []
    assert taken(directory, 4, record(shepherd(children), 9)) == UUIDS[2:]
    kill(shared[0].shepherd)
    state = survey(directory)["GPU-0"]
    assert ([one.job for one in state.holders], state.unused) == (["1", "2"], 400)


def test_tasks_of_a_parallel_job_share_until_the_last_one_ends(
    directory: str, children: list[int]
) -> None:
    first = record(shepherd(children), 5)
    task = record(shepherd(children), 5, parallel="1.node")
    other = record(shepherd(children), 6, parallel="1.node")
    assert taken(directory, 2, first) == UUIDS[:2]
    locks = Locks(directory, "boot")
    assert locks.join(UUIDS, task) == UUIDS[:2]
    assert locks.join(UUIDS, other) == []
    locks.close()
    kill(first.shepherd)
    assert taken(directory, 5, other) == []
    kill(task.shepherd)
    assert taken(directory, 6, other) == UUIDS


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 50000, b"sge_jobs lock 2\n" * 50],
    ids=["empty", "no text", "titles"],
)
def test_a_file_that_is_damaged_does_not_stop_a_claim(
    directory: str, children: list[int], content: bytes
) -> None:
    Locks(directory, "boot").close()
    for uuid in UUIDS:
        (Path(directory) / uuid).write_bytes(content)
    assert taken(directory, 6, record(shepherd(children))) == UUIDS


def test_a_record_that_was_cut_short_is_none(directory: str, children: list[int]) -> None:
    Locks(directory, "boot").close()
    mine = record(shepherd(children))
    (Path(directory) / "GPU-0").write_bytes(encode(mine)[:100])
    (Path(directory) / "GPU-1").write_bytes(encode(mine))
    states = survey(directory)
    assert [states[uuid].free for uuid in UUIDS[:3]] == [True, False, True]


def test_what_is_no_file_is_never_given(
    directory: str, children: list[int], tmp_path: Path
) -> None:
    Locks(directory, "boot").close()
    (tmp_path / "linked").write_text("precious")
    (Path(directory) / "GPU-0").symlink_to(tmp_path / "linked")
    os.mkfifo(Path(directory) / "GPU-1")
    (Path(directory) / "GPU-2").mkdir()
    assert taken(directory, 4, record(shepherd(children))) == []
    assert taken(directory, 3, record(shepherd(children))) == UUIDS[3:]
    assert (tmp_path / "linked").read_text() == "precious"
    assert all(survey(directory)[uuid].problem for uuid in UUIDS[:3])


def test_a_directory_that_users_can_write_is_refused(directory: str, tmp_path: Path) -> None:
    path = Path(directory)
    for mode in (0o1777, 0o770):
        path.parent.chmod(mode)
        with pytest.raises(LockError, match=f"{mode:o}"):
            Locks(directory, "boot")
    path.parent.chmod(0o755)
    path.symlink_to(tmp_path)
    with pytest.raises(LockError):
        Locks(directory, "boot")


@needs_root
def test_a_directory_of_another_user_is_refused(directory: str) -> None:
    os.chown(Path(directory).parent, 4321, 4321)
    with pytest.raises(LockError, match="4321"):
        Locks(directory, "boot")


def test_only_root_can_open_the_files_whatever_the_umask(
    directory: str, children: list[int]
) -> None:
    before = os.umask(0)
    try:
        taken(directory, 1, record(shepherd(children)))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in Path(directory).iterdir()}
    assert Path(directory).stat().st_mode & 0o7777 == 0o700
    assert set(modes) == {*UUIDS, "claims"}
    assert set(modes.values()) == {0o600}
