"""Processes of several hosts meet in a folder; whoever does not fit is refused."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel import hosts
from pycuda_nn.cuda.parallel.hosts import World, meet
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
