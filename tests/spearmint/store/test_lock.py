"""One controller per experiment."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

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
