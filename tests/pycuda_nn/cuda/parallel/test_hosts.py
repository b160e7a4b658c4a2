"""Processes of several hosts meet in a folder; whoever does not fit is refused."""

from __future__ import annotations

import contextlib
import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel import hosts
from pycuda_nn.cuda.parallel.hosts import World, meet
from pycuda_nn.cuda.parallel.presence import Presence
from pycuda_nn.errors import ConfigError, DeviceError, PycudaNNError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "meet"
    made.mkdir(mode=0o700)
    return made


def come(folder: Path, host: int, n_hosts: int = 2, gpus: int = 1) -> World:
    options = CudaOptions(hosts=n_hosts, host=host, meet=str(folder))
    return meet(options, gpus, lambda: b"an id")


def together(*calls: tuple[Path, int, int, int]) -> list[Future[World]]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [pool.submit(come, *call) for call in calls]


def test_each_host_has_its_ranks(folder: Path) -> None:
    found = together((folder, 0, 3, 2), (folder, 1, 3, 4), (folder, 2, 3, 1))
    worlds = [one.result() for one in found]
    assert [world.first for world in worlds] == [0, 2, 6]
    assert {(world.size, world.unique_id) for world in worlds} == {(7, b"an id")}


def test_a_folder_is_used_once(folder: Path) -> None:
    for one in together((folder, 0, 2, 1), (folder, 1, 2, 1)):
        one.result()
    for host in range(2):
        with pytest.raises(ConfigError, match=f"host {host} was here before"):
            come(folder, host)


def test_two_processes_of_one_host_do_not_both_come(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither has written anything when the other looks."""
    write = hosts._write
    refused: list[Path] = []

    def late(path: Path, value: object) -> None:
        if path.name == "host-1.json" and not refused:
            with pytest.raises(ConfigError, match="host 1 was here before"):
                come(folder, 1)
            refused.append(path)
        write(path, value)

    monkeypatch.setattr(hosts, "_write", late)
    found = together((folder, 0, 2, 1), (folder, 1, 2, 1))
    assert [one.result().size for one in found] == [2, 2]
    assert refused


def test_hosts_of_different_numbers_of_hosts_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "_LIMIT_S", 0.0)  # for the one that is not answered
    with pytest.raises(DeviceError, match="start did not come"):
        come(folder, 1, n_hosts=3)
    with pytest.raises(ConfigError, match="3 hosts, but --hosts is 2"):
        come(folder, 0)


def test_a_host_that_comes_later_is_not_one_of_an_old_start(folder: Path) -> None:
    for one in together((folder, 0, 2, 1), (folder, 1, 2, 1)):
        one.result()
    with pytest.raises(ConfigError, match="2 hosts, but --hosts is 3"):
        come(folder, 2, n_hosts=3)


@pytest.mark.parametrize(
    "start",
    ["[]", "{}", "3", '{"gpus": 2, "id": ""}', '{"gpus": ["x", 1], "id": ""}',
     '{"gpus": [1, 1], "id": "?"}', '{"gpus": [1, 1], "id": 7}', "{"],
)  # fmt: skip
def test_a_damaged_start_is_an_error_that_names_it(folder: Path, start: str) -> None:
    (folder / "start.json").write_text(start, encoding="utf-8")
    with pytest.raises(PycudaNNError, match=r"start\.json"):
        come(folder, 1)


@pytest.mark.parametrize("gpus", [-1, 0, None, "x"])
def test_a_damaged_number_of_gpus_is_an_error(folder: Path, gpus: object) -> None:
    (folder / "host-1.json").write_text(json.dumps({"gpus": gpus, "hosts": 2}), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"host-1\.json is damaged"):
        come(folder, 0)
    assert not (folder / "start.json").exists()


def test_a_folder_that_others_can_open_is_refused(folder: Path) -> None:
    folder.chmod(0o750)
    with pytest.raises(ConfigError, match="other users can open it"):
        come(folder, 0)


OTHER = """
import sys
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel.hosts import meet
world = meet(CudaOptions(hosts=2, host=1, meet=sys.argv[1]), 1, bytes)
print("met", flush=True)
sys.stdin.read()
world.presence.leave(done=sys.argv[2] == "done")
"""


@contextlib.contextmanager
def met(folder: Path, end: str) -> Iterator[tuple[Presence, subprocess.Popen[str]]]:
    """Meet a process, which ends in this way when its input does."""
    argv = [sys.executable, "-c", OTHER, str(folder), end]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as other:
        try:
            world = come(folder, 0)
            assert other.stdout is not None
            assert other.stdout.readline() == "met\n"
            assert world.presence is not None
            assert world.presence.lost() is None
            yield world.presence, other
            world.presence.leave(done=True)
        finally:
            other.kill()


def test_a_host_that_is_killed_is_lost(folder: Path) -> None:
    with met(folder, "done") as (presence, other):
        other.kill()
        other.wait()
        assert presence.lost() == 1
        assert presence.lost() == 1


@pytest.mark.parametrize(("end", "lost"), [("done", None), ("failed", 1)])
def test_a_host_that_has_finished_is_not_lost(folder: Path, end: str, lost: int | None) -> None:
    with met(folder, end) as (presence, other):
        other.communicate()
        assert presence.lost() == lost


def test_a_host_whose_lock_is_not_seen_is_not_watched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a network file system whose locks are of one host."""
    kernels = iter((b"one", b"another"))
    monkeypatch.setattr("pycuda_nn.cuda.parallel.presence._where", lambda _: next(kernels))
    caplog.set_level("INFO", logger="pycuda_nn")
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    worlds = [one.result() for one in together((folder, 0, 2, 1), (folder, 1, 2, 1))]
    assert [world.presence and world.presence.lost() for world in worlds] == [None, None]
    assert "host 1 is not watched" in caplog.text


def test_a_host_that_ends_before_it_is_watched_is_lost(folder: Path) -> None:
    """Its lock is free then, as one that cannot be seen."""
    for host in range(3):
        (folder / f"host-{host}").touch()
    own, killed, left = (Presence(folder / f"host-{host}") for host in range(3))
    killed._end()
    left.leave(done=True)
    own.watch({1: folder / "host-1", 2: folder / "host-2"})
    assert own.lost() == 1
    own.leave(done=True)


@pytest.mark.parametrize("unknown", [True, False])
def test_a_free_lock_of_another_kernel_says_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, unknown: bool
) -> None:
    from pycuda_nn.cuda.parallel import presence

    for host in range(2):
        (folder / f"host-{host}").touch()
    monkeypatch.setattr(presence, "_BOOT", folder / "boot")
    if not unknown:
        (folder / "boot").write_text("another kernel\n", encoding="utf-8")
    Presence(folder / "host-1")._end()
    if not unknown:
        (folder / "boot").write_text("this kernel\n", encoding="utf-8")
    own = Presence(folder / "host-0")
    own.watch({1: folder / "host-1"})
    assert own.lost() is None
    own.leave(done=True)


def test_a_file_system_without_locks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    for one in together((folder, 0, 2, 1), (folder, 1, 2, 1)):
        presence = one.result().presence
        assert presence is not None
        assert presence.lost() is None
        presence.leave(done=True)
