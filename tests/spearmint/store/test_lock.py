"""One controller per experiment."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spearmint.errors import NotWritable
from spearmint.layout import Layout
from spearmint.store.lock import ExperimentLock, holder_of


def test_a_lock_that_could_not_be_marked_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    layout = Layout(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            ExperimentLock(layout).acquire()
    with ExperimentLock(layout):
        assert holder_of(layout)["pid"] == os.getpid()
    assert holder_of(layout) is None


def test_an_experiment_in_a_bucket_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mounts(*, all: bool) -> list[Any]:
        return [
            SimpleNamespace(mountpoint="/", device="/dev/nvme0n1p1", fstype="ext4"),
            SimpleNamespace(mountpoint=str(tmp_path), device="mountpoint-s3", fstype="fuse"),
        ]

    monkeypatch.setattr(psutil, "disk_partitions", mounts)
    with pytest.raises(NotWritable, match="S3"):
        ExperimentLock(Layout(tmp_path / "digits")).acquire()
    assert list(tmp_path.iterdir()) == []
    with ExperimentLock(Layout(tmp_path.parent / "local")):
        pass
