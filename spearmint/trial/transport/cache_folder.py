"""Find the directory of this host in which the trials of one user keep data."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from spearmint.trial.transport.job_ad import job_text

VARIABLE = "SPEARMINT_CACHE"
"""Environment variable with the directory; it can be set by ``--setup`` or ``--env``."""


def open_folder() -> tuple[int | None, str]:
    """Open the directory, and create it if it is missing.

    It belongs to this user, and no other user can open it. Without :data:`VARIABLE`, there is none
    for an account that runs the jobs of several users, such as ``nobody``.

    Returns:
        Its file descriptor, or None and the reason.
    """
    reason = ""
    try:
        for path in _candidates():
            try:
                return _opened(path), ""
            except OSError as error:
                reason = reason or str(error)
    except LookupError as error:
        reason = str(error.args[0])
    return None, f"{reason}. {VARIABLE} names a directory of the host for a cache."


def _candidates() -> Iterator[Path]:
    if named := os.environ.get(VARIABLE):
        yield Path(named)
        return
    uid, owner = os.geteuid(), job_text("Owner")
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        raise LookupError(f"user {uid} has no name on this host") from None
    if account.pw_name != owner:
        raise LookupError(f"jobs of {owner or 'all users'} run as {account.pw_name}")
    yield Path(f"/var/tmp/spearmint-{uid}")  # noqa: S108 - opened only if it is this user's
    yield Path(account.pw_dir) / ".cache" / "spearmint"


def _opened(path: Path) -> int:
    """Open a directory that only this user can open; raises OSError."""
    if not path.is_absolute() or _is_of_job(path):
        raise OSError(f"{path} is not kept after the job")
    if not path.parent.is_dir() and path.parent.parent.is_dir():
        path.parent.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(folder)
        raise PermissionError(f"{path} is not a directory that only this user can open")
    if not os.access(f"/proc/self/fd/{folder}", os.W_OK):
        os.close(folder)
        raise PermissionError(f"{path} is read-only")
    return folder


def _is_of_job(path: Path) -> bool:
    """Return whether a directory is in the job's own, also by a mount (MOUNT_UNDER_SCRATCH)."""
    scratch = Path(os.environ.get("_CONDOR_SCRATCH_DIR", "") or Path.cwd())
    if path.is_relative_to(scratch):
        return True
    # Columns 4 and 5: the mounted directory, and where it is mounted.
    mounts = [line.split()[3:5] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return any(
        path.is_relative_to(point) and scratch.name in Path(source).parts
        for source, point in mounts
    )
