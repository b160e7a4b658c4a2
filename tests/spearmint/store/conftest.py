from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.store.study import Study
from tests.spearmint.store.studies import opened


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trials.db"


@pytest.fixture
def study(tmp_path: Path, url: str) -> Study:
    return opened(tmp_path, url)
