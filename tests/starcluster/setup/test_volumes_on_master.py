"""Volumes of the master on real block devices: only a new volume is formatted."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import starcluster.setup.run

pytestmark = pytest.mark.mount
SH = Path(starcluster.setup.__file__).parent / "sh"
MIB = 1024 * 1024


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A loop device of 16 MiB of zeros."""
    if not shutil.which("losetup") or not shutil.which("mkfs.ext4"):
        pytest.skip("needs losetup and mkfs.ext4")
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(16 * MIB)
    argv = ["losetup", "--find", "--show", str(disk)]
    made = subprocess.run(argv, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr}")
    name = made.stdout.strip()
    yield Path(name)
    subprocess.run(["umount", name], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["losetup", "--detach", name], check=True)


def master_script(then: str) -> subprocess.CompletedProcess[str]:
    """Run the functions for volumes of the master's script, and then ``then``."""
    script = (SH / "master.sh").read_text()
    functions = script[script.index("device_of()") : script.index("make_home()")]
    text = (SH / "common.sh").read_text() + functions + then
    return subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)


def mount(device: Path, path: Path, partition: str = "-") -> subprocess.CompletedProcess[str]:
    """Mount a volume like the master does."""
    given = f"VOLUMES='vol-1 {device} {partition} {path}' FSTAB={path.parent / 'fstab'}"
    return master_script(f"{given}\nmount_volumes\n")


def unmount(path: Path) -> None:
    subprocess.run(["umount", str(path)], check=True)


def test_a_new_volume_gets_a_file_system_once(device: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    done = mount(device, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"fact filesystem {device}\n"
    (path / "kept").write_text("results")
    assert mount(device, path).stdout == ""
    unmount(path)
    assert mount(device, path).stdout == ""
    assert (path / "kept").read_text() == "results"
    unmount(path)


def test_a_volume_is_mounted_again_when_the_machine_boots_by_itself(
    device: Path, tmp_path: Path
) -> None:
    fstab, path = tmp_path / "fstab", tmp_path / "data"
    kept = f"# {path}\nUUID=1 / ext4 defaults 0 1\n"
    fstab.write_text(f"{kept}/dev/xvdz {path} ext4 defaults 0 2\n")
    for _ in range(2):
        assert mount(device, path).returncode == 0
        unmount(path)
        line = f"{device} {path} auto defaults,nofail,x-systemd.device-timeout=60 0 2\n"
        assert fstab.read_text() == kept + line
    subprocess.run(["mount", "-T", fstab, path], check=True)
    unmount(path)


def test_what_holds_anything_is_never_formatted(device: Path, tmp_path: Path) -> None:
    with device.open("r+b") as file:
        file.seek(MIB // 2)
        file.write(b"somebody's data")
    done = mount(device, tmp_path / "data")
    assert done.returncode != 0
    assert re.search(f"vol-1 .*{device}", done.stderr)
    with device.open("rb") as file:
        file.seek(MIB // 2)
        assert file.read(15) == b"somebody's data"


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    done = mount(Path("/dev/sdzzz"), tmp_path / "data")
    assert done.returncode == 1
    assert re.search("vol-1.*/dev/xvdzzz", done.stderr)


@pytest.fixture
def nodes(tmp_path: Path) -> Callable[[str], Path]:
    """A function that creates a block device node without a disk."""

    def made(name: str) -> Path:
        path = tmp_path / name
        try:
            os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(7, 250))
        except PermissionError as error:
            pytest.skip(f"no device nodes: {error}")
        return path

    return made


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        (["xvdf"], "xvdf"),
        (["xvdf", "xvdf1"], "xvdf1"),
        (["xvdf", "xvdf1", "xvdf2"], "xvdf1"),
        (["xvdf", "xvdf2"], "xvdf"),
        (["nvme-vol", "nvme-vol-part1"], "nvme-vol-part1"),
    ],
)
def test_a_volume_with_partitions_is_used_by_its_first(
    nodes: Callable[[str], Path], there: list[str], chosen: str
) -> None:
    device, *_ = [nodes(name) for name in there]
    done = master_script(f"device={device}\nfirst_partition\necho $device\n")
    assert done.stdout == f"{device.parent / chosen}\n"


def test_a_whole_volume_that_is_given_its_partition_is_not_searched_for_one(
    nodes: Callable[[str], Path], tmp_path: Path
) -> None:
    device = nodes("xvdf")
    nodes("xvdf1")
    found = master_script(f"device_of vol-1 {device} 2; echo $device\n")
    assert found.returncode == 1
    assert re.search(f"vol-1.*{device}2", found.stderr)
    nodes("xvdf2")
    assert master_script(f"device_of vol-1 {device} 2; echo $device\n").stdout == f"{device}2\n"
    done = mount(device, tmp_path / "data", "2")
    assert re.search(f"vol-1 .*{device}2", done.stderr)
