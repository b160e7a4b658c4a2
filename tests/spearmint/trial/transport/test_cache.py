"""The cache of a host: what it believes, what two trials at once do, and what it deletes."""

from __future__ import annotations

import fcntl
import itertools
import os
import pwd
import subprocess
import sys
import threading
import time
from io import BufferedIOBase
from pathlib import Path

import pytest

from spearmint.trial.transport import cache
from spearmint.trial.transport.cache import DataMissing, data_name, open_data
from spearmint.trial.transport.cache_folder import open_folder


class Source:
    """Data of the submit side, which counts how often it is fetched."""

    def __init__(self, root: Path, content: bytes = b"data" * 1000) -> None:
        self.content, self.fetched, self.is_damaged = content, 0, False
        path = root / f"source-{len(content)}-{content[:1].hex()}"
        path.write_bytes(content)
        self.name = data_name(path)

    def fetch(self, target: BufferedIOBase) -> None:
        self.fetched += 1
        target.write(self.content[:-1] + b"?" if self.is_damaged else self.content)

    def use(self, here: Path) -> bytes:
        with open_data(self.name, self.fetch, here) as path:
            return path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPEARMINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("_CONDOR_SCRATCH_DIR", str(tmp_path / "scratch"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def test_data_is_fetched_once(folder: Path, source: Source, tmp_path: Path) -> None:
    for _ in range(3):
        assert source.use(tmp_path) == source.content
    assert source.fetched == 1
    assert [path.name for path in folder.iterdir()] == [source.name]
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["content", "length", "link", "folder link"])
def test_damaged_data_is_fetched_again(
    folder: Path, source: Source, tmp_path: Path, damage: str
) -> None:
    source.use(tmp_path)
    entry, other = folder / source.name, tmp_path / "other"
    other.write_bytes(source.content)
    if damage == "content":
        entry.write_bytes(b"evil" * 1000)
    elif damage == "length":
        entry.write_bytes(source.content[:-1])
    elif damage == "link":
        entry.unlink()
        entry.symlink_to(other)
    else:
        entry.unlink()
        entry.symlink_to(tmp_path)
    assert source.use(tmp_path) == source.content
    assert source.fetched == 2
    assert not entry.is_symlink()


def test_data_that_arrives_damaged_is_not_used(
    folder: Path, source: Source, tmp_path: Path
) -> None:
    source.is_damaged = True
    with pytest.raises(DataMissing, match="damaged"):
        source.use(tmp_path)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["", "data-1-x.zip", f"../data-1-{'0' * 64}.zip"])
def test_a_wrong_name_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(DataMissing), open_data(name, pytest.fail, tmp_path):
        pass


def test_trials_that_start_together_fetch_once(
    folder: Path, source: Source, tmp_path: Path
) -> None:
    ready = threading.Event()
    fetch = source.fetch

    def slowly(target: BufferedIOBase) -> None:
        ready.wait(30)
        fetch(target)

    source.fetch = slowly  # type: ignore[method-assign]
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda: got.append(source.use(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    ready.set()
    for thread in threads:
        thread.join()
    assert got == [source.content] * 4
    assert source.fetched == 1


def test_a_trial_does_not_wait_for_a_suspended_one(
    folder: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_STALLED_S", 0.0)
    folder.mkdir(mode=0o700)
    with (folder / f"{source.name}.part").open("wb") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        assert source.use(tmp_path) == source.content
        assert [path.name for path in folder.iterdir()] == [f"{source.name}.part"]
    assert source.use(tmp_path) == source.content  # its lock has ended
    assert [path.name for path in folder.iterdir()] == [source.name]


def test_a_trial_waits_for_one_that_says_that_it_lives(
    folder: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for its turn to fetch: its file does not grow."""
    monkeypatch.setattr(cache, "_STALLED_S", 0.0)
    folder.mkdir(mode=0o700)
    steps = itertools.count(1)

    def sleep(seconds: float) -> None:
        step = next(steps)
        os.utime(part.name, (step, step))
        if step == 9:
            (folder / source.name).write_bytes(source.content)

    with (folder / f"{source.name}.part").open("wb") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        monkeypatch.setattr(cache.time, "sleep", sleep)
        assert source.use(tmp_path) == source.content
    assert source.fetched == 0


_KILLED = """
import os, sys
from pathlib import Path
from spearmint.trial.transport.cache import open_data

def fetch(target):
    target.write(b"da")
    target.flush()
    os.kill(os.getpid(), 9)

with open_data(sys.argv[1], fetch, Path()):
    pass
"""


def test_a_trial_is_killed_while_it_fetches(folder: Path, source: Source, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _KILLED, source.name]
    assert subprocess.run(argv, check=False, cwd=tmp_path).returncode == -9
    assert [path.name for path in folder.iterdir()] == [f"{source.name}.part"]
    assert source.use(tmp_path) == source.content
    assert [path.name for path in folder.iterdir()] == [source.name]


def test_the_least_recently_used_data_is_deleted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 10_000)
    first, second, third = (Source(tmp_path, letter * 4000) for letter in (b"a", b"b", b"c"))
    for age, source in enumerate((second, first)):
        source.use(tmp_path)
        os.utime(folder / source.name, (age, age))
    assert first.use(tmp_path)  # now the newest
    (folder / f"{Source(tmp_path, b'x').name}.part").write_bytes(b"left by a killed trial")
    assert third.use(tmp_path) == third.content
    assert {path.name for path in folder.iterdir()} == {first.name, third.name}
    assert first.fetched == 1


def test_data_larger_than_the_cache_is_fetched_for_the_trial(
    folder: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 100)
    for _ in range(2):
        assert source.use(tmp_path) == source.content
    assert source.fetched == 2
    assert not list(folder.iterdir())


def test_data_stays_usable_when_it_is_deleted(folder: Path, source: Source, tmp_path: Path) -> None:
    with open_data(source.name, source.fetch, tmp_path) as path:
        (folder / source.name).unlink()
        assert path.read_bytes() == source.content


# The directory


_OWNER = pytest.param("owner", marks=pytest.mark.root)


@pytest.mark.parametrize(
    "wrong", ["others", "link", "file", "scratch", "relative", "missing", _OWNER]
)
def test_a_directory_that_is_not_the_users_is_not_used(
    folder: Path,
    source: Source,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    wrong: str,
) -> None:
    named = {"scratch": tmp_path / "scratch" / "cache", "relative": Path("cache")}
    named |= {"missing": tmp_path / "no" / "such" / "cache"}
    monkeypatch.setenv("SPEARMINT_CACHE", str(named.get(wrong, folder)))
    if wrong == "others":
        folder.mkdir()
        folder.chmod(0o770)
    elif wrong == "owner":
        folder.mkdir(mode=0o700)
        os.chown(folder, 12345, 12345)
    elif wrong == "link":
        (tmp_path / "target").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "target")
    elif wrong == "file":
        folder.touch()
    assert source.use(tmp_path) == source.content
    assert source.use(tmp_path) == source.content
    assert source.fetched == 2
    assert "for this trial only" in capfd.readouterr().err


def test_an_account_of_several_users_has_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPEARMINT_CACHE", raising=False)
    me = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setenv("_CONDOR_JOB_AD", str(tmp_path / "ad"))
    for owner in ("", 'Owner = "somebody"\n'):
        (tmp_path / "ad").write_text(owner)
        found, reason = open_folder()
        assert found is None
        assert f"run as {me}" in reason
        assert "SPEARMINT_CACHE" in reason
