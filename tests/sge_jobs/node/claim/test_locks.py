"""One lock per GPU: real processes, real flock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sge_jobs.node.claim import locks as module
from sge_jobs.node.claim.lock_files import LockError
from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.processes import read_process
from sge_jobs.node.claim.record import SIZE, Record, encode
from tests.sge_jobs.node.claim.group_carriers import GROUP, carrier
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[4]
UUIDS = [f"GPU-{place}" for place in range(6)]
needs_root = pytest.mark.root  # only root can give a process a group

Taken = list[tuple[str, int]]


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "with space")


def me(job: int = 1, *, group: int = 0, boot: str = "boot", **more: int) -> Record:
    return Record(
        job=str(job), user="alice", boot=boot, since=1, pid=os.getpid(), group=group, **more
    )


def claim(
    directory: str, wanted: int, mine: Record, boot: str = "boot"
) -> tuple[Taken, list[LockState]]:
    locks = Locks(directory, boot)
    try:
        mutex = locks.mutex(time.monotonic() + 30)
        assert mutex >= 0
        try:
            return locks.claim(wanted, UUIDS, mine)
        finally:
            os.close(mutex)
    finally:
        locks.close()


def survey(directory: str, boot: str = "boot", *, tidy: bool = False) -> dict[str, LockState]:
    locks = Locks(directory, boot)
    mutex = locks.mutex(time.monotonic() + 30)
    states = locks.survey(UUIDS, tidy=tidy)
    os.close(mutex)
    locks.close()
    return {state.uuid: state for state in states}


def fork(children: list[int], work: Callable[[], None]) -> int:
    """Run ``work`` in a child, which then sleeps until it is killed; return after ``work``."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            os.write(writing, b"x")
            code = 0
            time.sleep(60)
        finally:
            os._exit(code)
    os.close(writing)
    children.append(pid)
    done = os.read(reading, 1)
    os.close(reading)
    assert done == b"x"
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_two_hundred_claims_at_once_never_share_a_gpu(directory: str, tmp_path: Path) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    pids = []
    for number in range(200):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                wanted = number % 3 + 1
                taken: Taken = []
                while not taken:
                    taken, _ = claim(directory, wanted, me(number))
                    time.sleep(0 if taken else 0.02)
                names = ",".join(uuid for uuid, _ in taken)
                os.write(log, f"+ {names}\n".encode())
                time.sleep(0.002)
                os.write(log, f"- {names}\n".encode())
                code = 0 if len(taken) == wanted else 1
            finally:
                os._exit(code)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 200
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
    fork(children, lambda: assert_taken(claim(directory, 4, me(1))))
    taken, states = claim(directory, 3, me(2))
    assert taken == []
    assert [state.free for state in states] == [False] * 4 + [True] * 2
    assert {state.record.job for state in states if state.record and state.held} == {"1"}
    taken, _ = claim(directory, 2, me(2))
    assert [uuid for uuid, _ in taken] == UUIDS[4:]


def assert_taken(result: tuple[Taken, list[LockState]]) -> None:
    assert result[0]


def test_kill_frees_at_once_whatever_process_it_hits(directory: str, children: list[int]) -> None:
    pid = fork(children, lambda: assert_taken(claim(directory, 6, me(1))))
    assert claim(directory, 1, me(2))[0] == []
    kill(pid)
    assert len(claim(directory, 6, me(2))[0]) == 6


def test_the_lock_lives_on_in_a_child_across_exec_under_a_high_number(
    directory: str, tmp_path: Path
) -> None:
    go_on = tmp_path / "fifo"
    os.mkfifo(go_on)
    pid = os.fork()
    if pid == 0:
        claim(directory, 1, me(1))
        script = f"for i in $(seq 3 99); do eval exec $i'>&-'; done; cat '{go_on}' & exit"
        os.execv("/bin/bash", ["bash", "-c", script])  # noqa: S606
    os.waitpid(pid, 0)
    assert survey(directory)["GPU-0"].held
    go_on.write_text("")
    until(lambda: survey(directory)["GPU-0"].free)


@needs_root
def test_a_gpu_is_not_given_while_a_process_without_the_lock_lives(
    directory: str, children: list[int]
) -> None:
    holder = fork(children, lambda: assert_taken(claim(directory, 1, me(7, group=GROUP))))
    left = carrier(children)
    kill(holder)
    state = survey(directory)["GPU-0"]
    assert not state.held
    assert state.outlived
    assert [process.pid for process in state.processes] == [left]
    taken, _ = claim(directory, 5, me(8))
    assert [uuid for uuid, _ in taken] == UUIDS[1:]
    for _, descriptor in taken:
        os.close(descriptor)
    assert claim(directory, 6, me(8))[0] == []
    kill(left)
    assert len(claim(directory, 6, me(8))[0]) == 6


@needs_root
def test_the_group_of_the_claimer_itself_is_no_survivor(
    directory: str, children: list[int]
) -> None:
    holder = fork(children, lambda: assert_taken(claim(directory, 6, me(7, group=GROUP))))
    kill(holder)
    carrier(children)
    assert claim(directory, 6, me(8, group=GROUP + 1))[0] == []
    assert len(claim(directory, 6, me(8, group=GROUP))[0]) == 6


def test_a_lock_held_by_processes_of_a_dead_shepherd_is_named(
    directory: str, children: list[int]
) -> None:
    shepherd = fork(children, lambda: None)
    known = read_process(shepherd)
    assert known is not None
    record = me(7, shepherd=known.pid, shepherd_started=known.started)
    holder = fork(children, lambda: assert_taken(claim(directory, 1, record)))
    assert not survey(directory)["GPU-0"].outlived
    kill(shepherd)
    state = survey(directory)["GPU-0"]
    assert state.held
    assert state.outlived
    kill(holder)
    assert survey(directory)["GPU-0"].free


def test_a_record_of_an_earlier_boot_counts_for_nothing(
    directory: str, children: list[int]
) -> None:
    holder = fork(
        children, lambda: assert_taken(claim(directory, 6, me(7, group=os.getgid() or 1)))
    )
    kill(holder)
    assert survey(directory, "another")["GPU-0"].record is None
    assert len(claim(directory, 6, me(8, boot="another"), "another")[0]) == 6


def test_tidying_empties_the_records_of_free_gpus_only(directory: str, children: list[int]) -> None:
    holder = fork(children, lambda: assert_taken(claim(directory, 1, me(1))))
    kill(fork(children, lambda: assert_taken(claim(directory, 1, me(2)))))
    survey(directory, tidy=True)
    sizes = {uuid: (Path(directory) / uuid).stat().st_size for uuid in UUIDS[:2]}
    assert sizes == {"GPU-0": SIZE, "GPU-1": 0}
    kill(holder)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 5000, b"sge_jobs lock 1\n" * 50, encode(me(1))[:100], encode(me(1)) * 3],
    ids=["empty", "no text", "titles", "cut short", "three times"],
)
def test_hostile_records_do_not_stop_a_claim(directory: str, content: bytes) -> None:
    Locks(directory, "boot").close()
    for uuid in UUIDS:
        (Path(directory) / uuid).write_bytes(content)
    survey(directory)
    assert len(claim(directory, 6, me(1))[0]) == 6


def test_what_stands_in_place_of_a_lock_file_is_never_followed(
    directory: str, tmp_path: Path
) -> None:
    Locks(directory, "boot").close()
    victims = [tmp_path / "linked", tmp_path / "hard"]
    for victim in victims:
        victim.write_text("precious")
    (Path(directory) / "GPU-0").symlink_to(victims[0])
    os.link(victims[1], Path(directory) / "GPU-1")
    os.mkfifo(Path(directory) / "GPU-2")
    (Path(directory) / "GPU-3").mkdir()
    taken, _ = claim(directory, 2, me(1))
    assert [uuid for uuid, _ in taken] == UUIDS[4:]
    assert [victim.read_text() for victim in victims] == ["precious"] * 2
    states = survey(directory)
    assert all(states[uuid].problem and not states[uuid].free for uuid in UUIDS[:4])


def test_a_link_in_place_of_the_directory_is_refused(directory: str, tmp_path: Path) -> None:
    Path(directory).symlink_to(tmp_path)
    with pytest.raises(LockError):
        Locks(directory, "boot")


@needs_root
def test_root_takes_files_over_and_removes_what_is_no_lock(directory: str, tmp_path: Path) -> None:
    Locks(directory, "boot").close()
    (tmp_path / "victim").write_text("precious")
    os.chown(directory, 4321, 4321)
    mine = Path(directory) / "GPU-0"
    mine.write_text("")
    mine.chmod(0o600)
    os.chown(mine, 4321, 4321)
    os.link(tmp_path / "victim", Path(directory) / "GPU-1")
    (Path(directory) / "GPU-2").symlink_to(tmp_path / "victim")
    locks = Locks(directory, "boot")
    locks.own()
    locks.close()
    assert (mine.stat().st_uid, mine.stat().st_mode & 0o777) == (0, 0o666)
    assert Path(directory).stat().st_uid == 0
    assert sorted(path.name for path in Path(directory).iterdir()) == ["GPU-0"]
    assert (tmp_path / "victim").stat().st_mode & 0o777 != 0o666


@needs_root
def test_a_link_made_while_root_looks_gives_no_file_away(
    directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, lock = tmp_path / "victim", Path(directory) / "GPU-0"
    victim.write_text("precious")
    victim.chmod(0o600)
    os.chown(victim, 4321, 4321)
    locks = Locks(directory, "boot")
    lock.write_text("")
    look = os.stat

    def look_then_swap(name: str, **options: bool) -> os.stat_result:
        found = look(name, **options)
        lock.unlink()
        os.link(victim, lock)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", look_then_swap)
        locks.own()
    locks.close()
    assert lock.samefile(victim)
    assert (victim.stat().st_uid, victim.stat().st_mode & 0o777) == (4321, 0o600)


def test_every_user_can_use_the_files_whatever_the_umask(directory: str) -> None:
    before = os.umask(0o077)
    try:
        claim(directory, 1, me(1))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in Path(directory).iterdir()}
    assert Path(directory).stat().st_mode & 0o7777 == 0o1777
    assert modes == {"GPU-0": 0o666, "claims": 0o666}


@needs_root
def test_another_user_claims_in_a_sticky_directory(directory: str, children: list[int]) -> None:
    """With fs.protected_regular, the kernel refuses O_CREAT on a file of root."""
    for path in Path(directory).parents[:-1]:
        path.chmod(path.stat().st_mode | 0o011)
    Locks(directory, "boot").close()
    taken, _ = claim(directory, 2, me(1))
    for _, descriptor in taken:
        os.close(descriptor)

    def as_another() -> None:
        os.setgid(4321)
        os.setuid(4321)
        assert_taken(claim(directory, 6, me(2)))

    fork(children, as_another)
    assert claim(directory, 1, me(3))[0] == []


def test_tasks_of_a_parallel_job_share_until_the_last_one_ends(
    directory: str, children: list[int]
) -> None:
    def first() -> None:
        locks = Locks(directory, "boot")
        mutex = locks.mutex(time.monotonic() + 5)
        assert locks.claim(2, UUIDS, me(5), shared=True)[0]
        os.close(mutex)

    def second() -> None:
        locks = Locks(directory, "boot")
        mutex = locks.mutex(time.monotonic() + 5)
        assert [uuid for uuid, _ in locks.join(UUIDS, me(5))] == UUIDS[:2]
        assert locks.join(UUIDS, me(6)) == []
        os.close(mutex)

    one, two = fork(children, first), fork(children, second)
    kill(one)
    assert len(claim(directory, 5, me(9))[0]) == 0
    kill(two)
    assert len(claim(directory, 6, me(9))[0]) == 6


def test_waiting_ends_with_the_first_success_or_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter([([], []), ([("GPU-0", 5)], [])])
    assert module.wait_and_claim(lambda: next(results), 5)[0] == [("GPU-0", 5)]
    assert module.wait_and_claim(lambda: ([], [LockState(uuid="GPU-0", held=True)]), 0.1)[0] == []
