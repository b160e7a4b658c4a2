"""Private files of functions and values."""

from __future__ import annotations

from pathlib import Path

from spearmint.trial.function_call import read_private, write_private


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
