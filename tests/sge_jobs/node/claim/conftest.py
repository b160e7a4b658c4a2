from __future__ import annotations

import os

import pytest

from sge_jobs.node.claim import processes


@pytest.fixture(autouse=True)
def the_user_is_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept shepherds of the user who runs the tests."""
    monkeypatch.setattr(processes, "ROOT", os.getuid())
