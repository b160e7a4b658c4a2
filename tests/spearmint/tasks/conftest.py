from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spearmint
from spearmint.tasks import TaskExecutor


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., TaskExecutor]]:
    """Return a function that creates executors of one directory; the last one is shut down."""
    made: list[TaskExecutor] = []

    def create(driver: str = "local", **options: object) -> TaskExecutor:
        found = spearmint.executor(driver, directory=tmp_path / "tasks", **options)
        made.append(found)
        return found

    yield functools.partial(create)
    for each in made:
        each.shutdown(cancel_futures=True)
