from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spearmint.store.study import Study
from tests.spearmint.store.earlier import held, searched
from tests.spearmint.store.studies import opened


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trials.db"


@pytest.fixture
def study(tmp_path: Path, url: str) -> Study:
    return opened(tmp_path, url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of a search with six complete trials and one that runs."""
    return searched(tmp_path / "a #1 50% dir")


@pytest.fixture
def running(folder: Path) -> Iterator[Path]:
    with held(folder):
        yield folder
