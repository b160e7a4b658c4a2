"""Trials of a job on a host without the directory of the search."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from spearmint.layout import Layout, TrialFolder
from spearmint.trial.batch.remote import (
    bring_back,
    bring_files,
    drop_files,
    forget_result,
    remote_folder,
    send_files,
)
from spearmint.trial.reporting import read_reports
from tests.spearmint.trial.batch.batch_jobs import prepare, result


def test_a_host_without_the_directory_keeps_the_trials_in_the_folder_of_the_job(
    tmp_path: Path,
) -> None:
    code = """
def main_batch(trials):
    for trial in trials:
        (trial.files / "model").write_text("weights")
        trial.report(1, 0.5)
        trial.tell(trial.id) if trial.id != 3 else None
"""
    there = tmp_path / "there"
    there.mkdir()
    argv = prepare(there, code, (1, 2, 3))
    shutil.rmtree(Layout(there).jobs)
    assert subprocess.run(argv, check=False).returncode == 0
    job, layout = Layout(there).batch(1), Layout(tmp_path)
    layout.folder(2).path.mkdir(parents=True)
    for _ in range(2):
        bring_back(job, 2, layout.folder(2))
    assert result(tmp_path, 2)["value"] == 2.0
    assert read_reports(layout.folder(2).reports) == {1: 0.5}
    assert (layout.folder(2).files / "model").read_text() == "weights"
    layout.folder(3).path.mkdir()
    bring_back(job, 3, layout.folder(3))
    assert "without a result" in result(tmp_path, 3)["reason"]


def test_links_of_a_host_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    job, folder = TrialFolder(tmp_path / "batches" / "1"), TrialFolder(tmp_path / "jobs" / "1")
    sent = remote_folder(job, 1)
    sent.path.mkdir(parents=True)
    folder.path.mkdir(parents=True)
    sent.runner.write_text("{}")
    sent.result.symlink_to(secret)
    bring_back(job, 1, folder)
    assert not folder.result.exists()


def test_a_new_job_begins_with_the_files_of_its_trials(tmp_path: Path) -> None:
    job, folder = TrialFolder(tmp_path / "batches" / "1"), TrialFolder(tmp_path / "jobs" / "1")
    folder.files.mkdir(parents=True)
    (folder.files / "step").write_text("7")
    stale = remote_folder(job, 2)
    stale.path.mkdir(parents=True)
    send_files(job, [(1, folder), (2, TrialFolder(tmp_path / "jobs" / "2"))])
    assert (remote_folder(job, 1).files / "step").read_text() == "7"
    assert not stale.path.exists()


@pytest.fixture
def sent(tmp_path: Path) -> tuple[TrialFolder, TrialFolder, TrialFolder]:
    """A job, its trial 1, and what a host sent of it."""
    job, folder = TrialFolder(tmp_path / "batches" / "1"), TrialFolder(tmp_path / "jobs" / "1")
    there = remote_folder(job, 1)
    there.files.mkdir(parents=True)
    folder.path.mkdir(parents=True)
    there.runner.write_text("{}")
    return job, folder, there


def test_files_are_brought_again_with_links_to_the_last_checkpoint(sent) -> None:
    """A controller can be killed after the files and before the result, or a job be retried."""
    job, folder, there = sent
    (there.files / "steps").mkdir()
    (there.files / "steps" / "7").write_text("weights")
    (there.files / "last").symlink_to("steps/7")
    os.mkfifo(there.files / "pipe")
    bring_files(job, 1, folder)
    send_files(job, [(1, folder)])
    there.runner.write_text("{}")
    (there.files / "steps" / "8").write_text("more weights")
    (there.files / "last").unlink()
    (there.files / "last").symlink_to("steps/8")
    bring_files(job, 1, folder)
    assert (folder.files / "last").read_text() == "more weights"
    assert (folder.files / "last").is_symlink()
    assert sorted(path.name for path in (folder.files / "steps").iterdir()) == ["7", "8"]


def test_files_are_not_written_through_links_of_an_earlier_job(sent, tmp_path: Path) -> None:
    job, folder, there = sent
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("kept")
    folder.files.mkdir()
    (folder.files / "a").symlink_to(outside)
    (folder.files / "b").symlink_to(outside / "secret")
    (folder.files / "c").mkdir()
    (there.files / "a").mkdir()
    (there.files / "a" / "secret").write_text("new")
    (there.files / "b").write_text("new")
    (there.files / "c").write_text("new")
    bring_files(job, 1, folder)
    assert (outside / "secret").read_text() == "kept"
    assert not (folder.files / "a").is_symlink()
    assert {(folder.files / name).read_text() for name in ("a/secret", "b", "c")} == {"new"}


def test_dropped_files_free_their_disk_space_but_not_through_links(tmp_path: Path) -> None:
    job = TrialFolder(tmp_path / "batches" / "1")
    own = TrialFolder(tmp_path / "jobs" / "2")
    own.files.mkdir(parents=True)
    (own.files / "model").write_text("old")
    send_files(job, [(2, own)])
    assert (own.files / "model").stat().st_nlink == 2
    drop_files(job, 2)
    assert (own.files / "model").stat().st_nlink == 1
    remote_folder(job, 3).path.symlink_to(own.path)
    drop_files(job, 3)
    assert (own.files / "model").exists()


def test_a_result_that_is_forgotten_is_not_brought_back(sent) -> None:
    job, folder, there = sent
    there.result.write_text("{}")
    bring_back(job, 1, folder)
    assert folder.result.exists()
    forget_result(job, 1, folder)
    bring_back(job, 1, folder)
    assert not folder.result.exists()
