"""The test whether Grid Engine's packages crash on a host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sge_jobs.node import spooldefaults

REPOSITORY = Path(spooldefaults.__file__).parents[2]


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
    assert spooldefaults.spooldefaults_crash(programs(tmp_path, text)) == found


def test_a_program_that_hangs_or_is_not_there_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spooldefaults.spooldefaults_crash(tmp_path) == ""
    monkeypatch.setattr(spooldefaults, "TIMEOUT_S", 0.2)
    assert spooldefaults.spooldefaults_crash(programs(tmp_path, "exec sleep 60")) == ""


def test_it_runs_with_the_python_of_old_hosts() -> None:
    # Python 3.9 has no slots and kw_only of dataclasses, which the rest of sge_jobs uses.
    text = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); before = set(sys.modules); "
        "import sge_jobs.node.spooldefaults; "
        "print(*[name for name in set(sys.modules) - before if name.startswith('sge_jobs')])"
    )
    argv = [sys.executable, "-I", "-S", "-c", text]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == {
        "sge_jobs",
        "sge_jobs.node",
        "sge_jobs.node.spooldefaults",
    }
