"""The directory of the locks is in /tmp, where another user can create it first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spearmint.drivers.celery.gpus import LOCKS, GpuLocks
from spearmint.errors import SpearmintError


@pytest.mark.parametrize("kind", ["dangling link", "link", "file", "open to others"])
def test_a_directory_of_somebody_else_is_refused_with_a_way_out(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "locks", tmp_path / "other"
    if kind == "file":
        path.touch(0o600)
    elif kind == "open to others":
        path.mkdir()
        path.chmod(0o777)
    else:
        path.symlink_to(other)
        if kind == "link":
            other.mkdir(0o700)
    with pytest.raises(SpearmintError, match=rf"{path}.*\n.*{LOCKS}"):
        GpuLocks(path)
    assert not list(other.glob("*"))


def test_a_private_directory_is_used_again(tmp_path: Path) -> None:
    for uuid in ("GPU-1", "GPU-2"):
        fd = GpuLocks(tmp_path / "locks").lock(uuid)
        assert fd is not None
        os.close(fd)
    assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o700
