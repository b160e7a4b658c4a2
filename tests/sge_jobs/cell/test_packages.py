"""Programs of Grid Engine that crash, and what is said about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sge_jobs.cell import packages
from sge_jobs.errors import CellError, QueueUnreachable


def programs(folder: Path, spooldefaults: str) -> Path:
    for name, text in (("spoolinit", "exit 0"), ("spooldefaults", spooldefaults)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kill -SEGV $$", "SIGSEGV"),
        ("sh -c 'kill -ABRT $$'; exit $?", "SIGABRT"),  # a wrapper that does not exec
        ("exit 0", ""),
        ("echo cannot resolve this host >&2; exit 1", ""),
        ("exit 255", ""),
    ],
)
def test_only_a_signal_is_a_crash(tmp_path: Path, text: str, found: str) -> None:
    assert packages.spooldefaults_crash(programs(tmp_path, text)) == found


def test_a_program_that_hangs_or_is_not_there_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert packages.spooldefaults_crash(tmp_path) == ""
    monkeypatch.setattr(packages, "_TIMEOUT_S", 0.2)
    assert packages.spooldefaults_crash(programs(tmp_path, "exec sleep 60")) == ""


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
    for package in packages.DEBIAN_PACKAGES:
        is_mine = package.architecture in ("all", architecture)
        assert (f"get {package.file} {package.sha256} &&\n" in text) is is_mine
    assert text.index("get gridengine-master") < text.index("apt-get install")
