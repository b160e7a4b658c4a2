"""Programs of Grid Engine that crash, and what is said about them."""

from __future__ import annotations

import pytest

from sge_jobs.cell import packages
from sge_jobs.errors import CellError, QueueUnreachable


def test_only_an_unreachable_master_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "spooldefaults_crash", lambda: "SIGSEGV")
    refused = CellError("denied")
    assert packages.explain(refused) is refused
    told = packages.explain(QueueUnreachable("no answer"))
    assert "no answer" in told.what
    assert "SIGSEGV" in told.what
    assert "apt-mark hold" in told.fix


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_the_commands_check_every_file_before_they_install(architecture: str) -> None:
    text = packages.install_commands(architecture)
    for package in (*packages.DEBIAN_PACKAGES, *packages.HWLOC_PACKAGES):
        is_mine = package.architecture in ("all", architecture)
        assert (f"get {package.folder}/{package.file} {package.sha256}" in text) is is_mine
    assert text.index("gridengine-master") < text.index("apt-get install")
