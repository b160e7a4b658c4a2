"""Directories of searches: a missing config.pb, and objects of the same process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint.errors import InputError, StudyMismatch

SPACE = {"x": (0, 1)}


def start(directory: Path, space: Any = None, **settings: Any) -> spearmint.Search:
    settings = {"method": "RandomChooser", **settings}
    return spearmint.Search(space or SPACE, directory=directory, **settings)


def test_a_lost_config_returns_only_with_the_stored_space(tmp_path: Path) -> None:
    with start(tmp_path, direction="maximize") as search:
        search.tell(search.ask(), 1.0)
    config = tmp_path / "config.pb"
    text = config.read_text()
    config.unlink()
    with pytest.raises(StudyMismatch, match=r"(?s)no config\.pb.*x: stored.* 1; now.* 2"):
        start(tmp_path, {"x": (0, 2)})
    assert not config.exists()
    with start(tmp_path) as search:
        assert len(search.trials) == 1
    assert config.read_text() == text


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"space": {"x": (0, 2)}}, StudyMismatch), ({"method": "Randm"}, InputError)],
)
def test_a_failed_second_search_leaves_the_first_open(
    tmp_path: Path, settings: dict[str, Any], error: type[Exception]
) -> None:
    with start(tmp_path) as first:
        first.tell(first.ask(), 1.0)
        with pytest.raises(error):
            start(tmp_path, **settings)
        first.tell(first.ask(), 0.5)
    with start(tmp_path) as search:
        assert len(search.trials) == 2


def test_a_directory_that_was_deleted_is_a_new_search(tmp_path: Path) -> None:
    first = start(tmp_path / "s")
    first.tell(first.ask(), 1.0)
    shutil.rmtree(tmp_path / "s")
    with start(tmp_path / "s", {"y": (0, 2)}) as second:
        assert second.trials == []
        second.tell(second.ask(), 0.5)
        with pytest.raises(InputError, match="closed"):
            first.ask()
        with start(tmp_path / "s", {"y": (0, 2)}) as third:  # still takes over in a notebook
            assert len(third.trials) == 1


def test_a_wrong_method_does_not_replace_the_space(tmp_path: Path) -> None:
    with start(tmp_path) as first:
        with pytest.raises(InputError, match="Randm"):
            start(tmp_path, {"y": (0, 2)}, method="Randm")
        assert first.ask().params.keys() == {"x"}


def test_no_arguments_of_a_method_can_be_none(tmp_path: Path) -> None:
    with start(tmp_path, method_args=None, pruner="median", pruner_args=None) as search:
        assert search.ask().id == 1
