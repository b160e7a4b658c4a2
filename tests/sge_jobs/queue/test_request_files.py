"""Default options of qsub in files: which are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from sge_jobs.errors import InputError
from sge_jobs.queue.request_files import kept_defaults


@pytest.fixture
def request_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cell" / "common").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: (_ for _ in ()).throw(KeyError(uid)))
    return tmp_path / "cell" / "common" / "sge_request"


def kept(file: Path, *argv: str) -> list[str]:
    root = str(file.parents[2])
    return kept_defaults({"SGE_ROOT": root, "SGE_CELL": "cell"}, argv)


def test_without_files_nothing_is_added(request_file: Path) -> None:
    assert kept(request_file) == []


def test_what_places_and_accounts_a_job_is_kept_in_order(request_file: Path) -> None:
    request_file.write_text("# -t 1-9\n-l 'a=1' -t 1-5 -pe x 2 -soft -q b.q\n  -p -10 -h -V\n'\n")
    (request_file.parents[2] / ".sge_request").write_text("-P mine -w v -N other")
    assert kept(request_file) == [
        *("-clear", "-l", "a=1", "-soft", "-q", "b.q", "-p", "-10", "-V", "-P", "mine", "-hard")
    ]
    assert "b.q" not in kept(request_file, "-q", "c.q")


@pytest.mark.parametrize("option", ["-sync y", "-sync yes", "-l a=1\n-sync y # x"])
def test_an_option_that_cannot_be_overridden_is_named(request_file: Path, option: str) -> None:
    request_file.write_text(option)
    with pytest.raises(InputError, match=str(request_file)):
        kept(request_file)
