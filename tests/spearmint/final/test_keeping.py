"""Why a model cannot be copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from spearmint.final.keeping import _reason


def test_a_file_that_cannot_be_copied_is_named(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    os.mkfifo(model / "pipe")
    with pytest.raises(shutil.Error) as raised:
        shutil.copytree(model, tmp_path / "copy")
    assert _reason(raised.value) == f"`{model / 'pipe'}` is a named pipe"
