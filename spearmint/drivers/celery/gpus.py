"""The GPUs of this host, and the locks by which workers share them out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from spearmint.errors import InputError, SpearmintError

LOCKS = "SPEARMINT_GPU_LOCKS"
"""Environment variable with another directory of locks."""

_UUID = re.compile(r"\(UUID: ((?:GPU|MIG)-[0-9A-Za-z/-]+)\)")


def gpus_of_host() -> list[str]:
    """Return the UUIDs of the GPUs, or of the MIG devices of GPUs that have some.

    Raises:
        SpearmintError: nvidia-smi does not work.
    """
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpearmintError(
            f"cannot list the GPUs of this host: nvidia-smi: {reason}",
            "For trials without a GPU: spearmint worker --gpus none",
        ) from None
    found: list[list[str]] = []
    for uuid in _UUID.findall(done.stdout):
        if uuid.startswith("MIG-") and found:
            found[-1].append(uuid)
        else:
            found.append([uuid])
    return [device for gpu in found for device in gpu[1:] or gpu]


class GpuLocks:
    """Files in ``/tmp/spearmint-gpus-UID`` that this user's workers lock, one for each GPU."""

    def __init__(self, directory: Path | None = None) -> None:
        uid = os.geteuid()
        named = directory or os.environ.get(LOCKS)
        self._directory = Path(named or f"/tmp/spearmint-gpus-{uid}")  # noqa: S108 - checked
        with contextlib.suppress(FileExistsError):  # anything of another user, or a dangling link
            self._directory.mkdir(mode=0o700)
        found = self._directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
            raise SpearmintError(
                f"{self._directory} is not a directory that only this user can use",
                f"Remove it, or set {LOCKS} to a private directory, the same for all your workers.",
            )

    def lock(self, uuid: str, wait_s: float = 5.0) -> int | None:
        """Lock a GPU and return the file descriptor; None if another worker has it.

        A trial keeps the lock of a killed worker until all its processes have ended.
        """
        deadline = time.monotonic() + wait_s
        while (fd := self._try(uuid)) is None and time.monotonic() < deadline:
            time.sleep(0.1)
        return fd

    def _try(self, uuid: str) -> int | None:
        path = self._directory / uuid.replace("/", "_")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_ino == path.stat().st_ino:
                return fd
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(fd)
        return None


def take_gpus(wanted: str, uuids: Sequence[str], locks: GpuLocks) -> dict[str, int]:
    """Lock GPUs; return the file descriptors of the locks by UUID.

    Args:
        wanted: ``all`` for those that no other worker has, or a number.
        uuids: The GPUs of this host.
        locks: The locks.

    Raises:
        InputError: The number is invalid, or the host has fewer GPUs.
        SpearmintError: Other workers have too many of them.
    """
    count = len(uuids) if wanted == "all" else int(wanted)
    if count > len(uuids):
        raise InputError(f"this host has {len(uuids)} GPUs, not {count}", "Use --gpus all.")
    taken: dict[str, int] = {}
    for wait_s in (0.0, 2.0):
        for uuid in uuids:
            if uuid not in taken and len(taken) < count:
                fd = locks.lock(uuid, wait_s)
                taken |= {} if fd is None else {uuid: fd}
    if not taken or (wanted != "all" and len(taken) < count):
        for fd in taken.values():
            os.close(fd)
        raise SpearmintError(
            f"other workers have {len(uuids) - len(taken)} of the {len(uuids)} GPUs of this host",
            "List them: spearmint workers",
        )
    return taken
