"""The helper that waits as long as there is progress."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.waiting import text_of, until


def test_it_returns_when_it_happens() -> None:
    numbers = count()
    until(lambda: next(numbers) == 3, 1.0, 0.001)
    assert next(numbers) == 4


def test_so_many_looks_without_a_change_are_enough() -> None:
    numbers = count()
    with pytest.raises(TimeoutError, match=r"0\.01 s"):
        until(lambda: next(numbers) < 0, 0.01, 0.001)
    assert 29 <= next(numbers) <= 32


def test_progress_begins_the_count_anew() -> None:
    numbers = count()
    until(lambda: next(numbers) >= 100, 0.01, 0.001, progress=lambda: next(numbers) // 8)


def test_a_file_that_is_missing_has_no_text(tmp_path: Path) -> None:
    assert text_of(tmp_path / "missing") == ""
    (tmp_path / "there").write_text("x")
    assert text_of(tmp_path / "there") == "x"
