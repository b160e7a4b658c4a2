"""Jobs that an earlier version started, which hold locks that any user can take."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from sge_jobs.node.claim import upgrade
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.request import Request
from sge_jobs.node.gpus.inventory import boot_id
from tests.sge_jobs.node.claim.shepherds import become_shepherd, fork, kill

UUIDS = ["GPU-0", "GPU-1", "GPU-2"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Directory of the earlier version."""
    (tmp_path / "old").mkdir()
    for name in (*UUIDS, "claims"):
        (tmp_path / "old" / name).touch()
    return tmp_path / "old"


@pytest.fixture
def locks(tmp_path: Path) -> Locks:
    (tmp_path / "run").mkdir(mode=0o755)
    return Locks(str(tmp_path / "run" / "locks"), boot_id())


def job(children: list[int], old: Path, *gpus: str, name: str = "7.1") -> int:
    """Start a process of job ``name`` that locks ``gpus`` as the earlier version did."""
    spool = old.parent / "active_jobs" / name
    spool.mkdir(parents=True)
    (spool / "config").write_text("add_grp_id=20001\n")

    def hold() -> None:
        become_shepherd(spool)
        for gpu in gpus:
            fcntl.flock(os.open(old / gpu, os.O_RDONLY), fcntl.LOCK_EX)

    return fork(children, hold)


def adopted(locks: Locks, old: Path, monkeypatch: pytest.MonkeyPatch, gpus: int) -> list[str]:
    """Return the GPUs of running jobs after the update, if each job requested ``gpus``."""
    request = Request(owner="bob", resources={"gpu": str(gpus)}, parallel=False, array=False)
    monkeypatch.setattr(upgrade, "query_request", lambda job, environment: request)
    upgrade.adopt(locks, UUIDS, {}, [str(old), "/nonexistent"])
    return [state.uuid for state in locks.survey(UUIDS) if state.running]


def test_running_jobs_keep_the_gpus_that_they_locked(
    locks: Locks, old: Path, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    above = job(children, old, "GPU-1")
    assert adopted(locks, old, monkeypatch, 1) == ["GPU-1"]
    assert adopted(locks, old, monkeypatch, 1) == ["GPU-1"]
    (record,) = locks.read("GPU-1")
    assert (record.job, record.user, record.group) == ("7", "bob", 20001)
    kill(above)
    assert adopted(locks, old, monkeypatch, 1) == []


@pytest.mark.parametrize("requested", [0, 1, 2])
def test_a_job_takes_over_no_more_gpus_than_it_requested(
    locks: Locks, old: Path, children: list[int], monkeypatch: pytest.MonkeyPatch, requested: int
) -> None:
    job(children, old, *UUIDS)
    assert len(adopted(locks, old, monkeypatch, requested)) == requested


def test_a_process_outside_a_job_takes_over_nothing(
    locks: Locks, old: Path, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fork(children, lambda: fcntl.flock(os.open(old / "GPU-0", os.O_RDONLY), fcntl.LOCK_EX))
    assert adopted(locks, old, monkeypatch, 1) == []


def test_the_old_directory_goes_when_no_lock_in_it_is_held(old: Path, children: list[int]) -> None:
    (old / "link").symlink_to("/dev/null")
    os.mkfifo(old / "pipe")
    holder = fork(children, lambda: fcntl.flock(os.open(old / "GPU-2", os.O_RDONLY), fcntl.LOCK_EX))
    upgrade.remove_old([str(old), "/nonexistent"])
    assert len(list(old.iterdir())) == 6
    kill(holder)
    upgrade.remove_old([str(old)])
    assert not old.exists()


def test_what_a_user_puts_in_place_of_the_old_directory_is_not_touched(
    old: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(old)
    upgrade.remove_old([str(tmp_path / "link"), str(old / "claims")])
    assert len(list(old.iterdir())) == 4
    (old / "GPU-0").unlink()
    (old / "GPU-0").mkdir()
    upgrade.remove_old([str(old)])
    assert (old / "GPU-0").is_dir()
