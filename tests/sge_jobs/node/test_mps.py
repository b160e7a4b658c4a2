"""The MPS daemons of a host, with a stand-in for NVIDIA's program.

The stand-in does what nvidia-cuda-mps-control 580 does: it leaves a daemon whose parent is init,
and writes into its directory. Real daemons run in test_mps_gpu.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sge_jobs.node.claim.answer import write_in
from sge_jobs.node.mps import CONTROL, Mps, MpsError, MpsStart, client_variables
from tests.waiting import until

pytestmark = pytest.mark.root  # only root can start a process of another user

ALICE, BOB = 61001, 61002
GPU = "GPU-5a"
DAEMON = """#!/bin/sh
[ "$1" = -d ] && [ -n "$CUDA_MPS_PIPE_DIRECTORY" ] || exit 1
(
    %s
    cd "$CUDA_MPS_PIPE_DIRECTORY"
    echo $CUDA_VISIBLE_DEVICES $(id -u) $(id -G) > writing && mv writing gpu
    while :; do read -r line < "$CUDA_MPS_PIPE_DIRECTORY/control" || sleep 0.2; done 2> /dev/null
) > /dev/null &
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_mode & 0o55 != 0o55 and part.owner() == "root":
            part.chmod(part.stat().st_mode | 0o55)
    return tmp_path


@pytest.fixture
def mps(place: Path) -> Iterator[Mps]:
    found = Mps(str(place / "mps"), str(program(place)))
    yield found
    for known in found.known():
        found.end(*known)


def program(place: Path, lines: str = "") -> Path:
    path = place / CONTROL
    path.write_text(DAEMON % lines)
    path.chmod(0o755)
    return path


def pids(mps: Mps, user: int) -> list[int]:
    return [pid for pid in mps._pids() if mps._of(pid) == (user, mps.pipes(GPU, user))]


def test_each_user_has_a_daemon_for_a_gpu(mps: Mps) -> None:
    for user in (ALICE, BOB, ALICE):
        pipes = mps.start(GPU, user, user)
        until(Path(pipes, "gpu").exists)
        assert Path(pipes, "gpu").read_text().split() == [GPU, str(user), str(user)]
        status = Path(pipes).stat()
        assert (status.st_uid, status.st_mode & 0o777) == (user, 0o700)
    assert mps.running() == {(GPU, ALICE), (GPU, BOB)}
    assert len(pids(mps, ALICE)) == 1
    mps.end(GPU, ALICE)
    assert mps.running() == {(GPU, BOB)} == mps.known()
    assert not pids(mps, ALICE)


def test_a_dead_daemon_is_noticed_and_started_again(mps: Mps) -> None:
    mps.start(GPU, ALICE, ALICE)
    for pid in pids(mps, ALICE):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not mps.running())
    assert mps.known() == {(GPU, ALICE)}
    mps.start(GPU, ALICE, ALICE)
    assert mps.running() == {(GPU, ALICE)}


def test_a_daemon_that_ignores_sigterm_ends(place: Path) -> None:
    mps = Mps(str(place / "mps"), str(program(place, "trap '' TERM")))
    mps.start(GPU, ALICE, ALICE)
    until(Path(mps.pipes(GPU, ALICE), "gpu").exists)
    mps.end(GPU, ALICE)
    assert not mps.running()
    assert not mps.known()


def test_a_process_of_another_user_is_neither_the_daemon_nor_killed(mps: Mps, place: Path) -> None:
    """Bob runs a process that says it is alice's daemon."""
    mps.start(GPU, BOB, BOB)
    impostor = subprocess.Popen(
        ["setpriv", f"--reuid={BOB}", "--clear-groups", "sh", place / CONTROL, "-d"],
        env={"CUDA_MPS_PIPE_DIRECTORY": mps.pipes(GPU, ALICE), "PATH": os.environ["PATH"]},
        stderr=subprocess.DEVNULL,
    )
    impostor.wait()
    assert mps.running() == {(GPU, BOB)}
    mps.end(GPU, ALICE)
    assert mps.running() == {(GPU, BOB)}


def test_a_daemon_that_does_not_start_says_why(place: Path) -> None:
    broken = place / CONTROL
    broken.write_text("#!/bin/sh\necho 'no CUDA device'\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(MpsError, match="no CUDA device"):
        Mps(str(place / "mps"), str(broken)).start(GPU, ALICE, ALICE)
    with pytest.raises(MpsError, match="nowhere"):
        Mps(str(place / "mps"), "/nowhere").start(GPU, ALICE, ALICE)


def test_two_starts_at_once_leave_one_daemon(mps: Mps, place: Path) -> None:
    program(place, '[ -e gpu ] || mkdir "$CUDA_MPS_PIPE_DIRECTORY/only" 2> /dev/null || exit 1')
    directory = str(place / "mps")
    both = [MpsStart(directory, GPU, "nobody") for _ in range(2)]
    until(lambda: all(one.has_ended() for one in both))
    # The program of the test is in no directory that is searched for the real one.
    assert {one.problem for one in both} == {f"{CONTROL} is not installed"}
    with ThreadPoolExecutor() as pool:
        assert len(set(pool.map(lambda _: mps.start(GPU, ALICE, ALICE), range(4)))) == 1
    assert mps.running() == {(GPU, ALICE)}
    assert MpsStart(directory, GPU, "no-such-user").pipes == ""


def test_answers_to_other_jobs_do_not_take_the_rights_of_a_start(mps: Mps, place: Path) -> None:
    spool, ends = place / "spool", threading.Event()
    spool.mkdir()
    os.chown(spool, BOB, BOB)

    def answers() -> None:
        while not ends.is_set():
            write_in(str(spool), "answer", "text")  # changes the user of all threads

    with ThreadPoolExecutor() as pool:
        writes = pool.submit(answers)
        try:
            for user in range(ALICE + 10, ALICE + 25):
                mps.start(GPU, user, user)
                assert (GPU, user) in mps.running()
        finally:
            ends.set()
        writes.result()


def test_the_variables_of_a_share() -> None:
    assert client_variables("/p", 250, 1000) == {
        "CUDA_MPS_PIPE_DIRECTORY": "/p",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=250M",
    }
    assert "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" not in client_variables("/p", 250)
