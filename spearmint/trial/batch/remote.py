"""Trials of a job on a host without the directory of the search.

Such a host has only the folder of the job, whose ``files`` a queue sends there and back. Each trial
has its folder in there. Only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from spearmint.layout import TrialFolder

_PART = ".brought"


def remote_folder(job: TrialFolder, trial_id: int) -> TrialFolder:
    """Return the folder of a trial in that of its job; it does not have to exist."""
    return TrialFolder(job.files / f"{trial_id:08d}")


def send_files(job: TrialFolder, trials: Iterable[tuple[int, TrialFolder]]) -> None:
    """Begin the ``files`` of a new job with those that its trials have from earlier jobs."""
    shutil.rmtree(job.files, ignore_errors=True)
    for number, folder in trials:
        if folder.files.is_dir() and any(folder.files.iterdir()):
            _merge(folder.files, remote_folder(job, number).files, _link_or_copy)


def _merge(source: Path, target: Path, copy: Callable[[Path, Path], object]) -> None:
    """Copy a folder into another one. Links are copied, and replaced, but not followed."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        there = target / entry.name
        is_folder = entry.is_dir() and not entry.is_symlink()
        if there.is_dir() and not there.is_symlink():
            if not is_folder:
                shutil.rmtree(there)
        else:
            there.unlink(missing_ok=True)
        if is_folder:
            _merge(entry, there, copy)
        elif entry.is_symlink():
            there.symlink_to(entry.readlink())
        elif entry.is_file():  # not a socket or a pipe
            copy(entry, there)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def bring_back(job: TrialFolder, trial_id: int, folder: TrialFolder) -> None:
    """Copy what a host sent of a trial to ``folder``, the result last; nothing if there is none.

    Calling it again, also after a kill, has the same effect as one call.
    """
    sent = remote_folder(job, trial_id)
    if not _was_used(sent):
        return
    has_result = sent.result.is_file() and not folder.result.exists()
    for source, target in ((sent.runner, folder.runner), (sent.reports, folder.reports)):
        _bring(source, target)
    if has_result:
        _bring(sent.gpu_use, folder.gpu_use)
        bring_files(job, trial_id, folder)
        _bring(sent.result, folder.result)


def bring_files(job: TrialFolder, trial_id: int, folder: TrialFolder) -> None:
    """Copy the files that a host sent of a trial, such as a checkpoint; nothing if there are none.

    A file that the trial is still writing can be copied in part.
    """
    sent = remote_folder(job, trial_id)
    if _was_used(sent) and sent.files.is_dir() and not sent.files.is_symlink():
        _merge(sent.files, folder.files, shutil.copy2)


def drop_files(job: TrialFolder, trial_id: int) -> None:
    """Delete the files of a trial in the folder of its job, which it needs no more.

    They are those of earlier jobs, or copies: hard links keep the disk space of files that the
    trial has replaced. As long as the job runs on a host without the directory, the queue can bring
    them again.
    """
    sent = remote_folder(job, trial_id)
    if not (job.files.is_symlink() or sent.path.is_symlink()):
        shutil.rmtree(sent.files, ignore_errors=True)


def forget_result(job: TrialFolder, trial_id: int, folder: TrialFolder) -> None:
    """Delete the result of a trial that is retried, and what a host sent of it."""
    sent = remote_folder(job, trial_id)
    if _was_used(sent):
        sent.result.unlink(missing_ok=True)
    folder.result.unlink(missing_ok=True)


def _was_used(sent: TrialFolder) -> bool:
    """Return whether a host without the directory of the search ran the trial."""
    return sent.runner.is_file() and not sent.path.is_symlink()


def _bring(source: Path, target: Path) -> None:
    """Copy a regular file by rename, if it is newer or of another size."""
    with contextlib.suppress(FileNotFoundError):
        if source.is_symlink() or _state(source) == _state(target):
            return
        part = target.with_name(f".{target.name}{_PART}")
        shutil.copy2(source, part)
        part.replace(target)


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
