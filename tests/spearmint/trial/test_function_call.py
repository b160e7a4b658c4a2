"""Private files of functions and values."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from spearmint.layout import TrialFolder
from spearmint.trial.function_call import (
    PYTHON,
    call_function,
    function_file,
    read_private,
    value_file,
    write_private,
)


def test_a_module_that_this_host_lacks_is_named_with_a_cure(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    content = b"cno_such_module\nwork\n."  # as pickle writes a function of a module
    write_private(function_file(folder), content)
    with pytest.raises(ModuleNotFoundError, match="register_pickle_by_value"):
        call_function({"python": PYTHON, "path": []}, folder)
    is_value, error = pickle.loads(read_private(value_file(folder)))  # noqa: S301
    assert not is_value
    assert "no_such_module" in str(error)


def test_a_link_in_place_of_the_partial_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"kept")
    (tmp_path / ".value.pickle.part").symlink_to(target)
    path = tmp_path / "value.pickle"
    write_private(path, b"new")
    assert target.read_bytes() == b"kept"
    assert read_private(path) == b"new"
    assert not path.is_symlink()


def test_a_partial_file_that_others_can_read_is_replaced(tmp_path: Path) -> None:
    part = tmp_path / ".value.pickle.part"
    part.touch()
    part.chmod(0o666)
    path = tmp_path / "value.pickle"
    write_private(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600
