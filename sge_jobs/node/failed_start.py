"""Tell users why a job could not start: in the job's log, and in its context for ``qstat -j``.

Grid Engine only says "exit_status of job start = 100". It discards the standard error of a job that
opens its own log.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from sge_jobs.node.queries import QueryFailed, ask, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = "SGE_JOBS_LOG"
"""Variable with the path of the job's log, see :func:`pack`."""

CONTEXT = "sge_jobs_failed"
"""Name in the job's context."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
_OCTAL = frozenset("01234567")
_MOST_WORDS = 400
_MOST_PACKED = 800  # Grid Engine copies a load value into 1000 bytes without checking its length
_WAIT_S = 10.0


class FailedStart:
    """A start of a job that failed on a host.

    Attributes:
        host: Name of the host in Grid Engine.
        at: Seconds since the epoch.
        times: Number of failed starts in a row on this host.
        reason: One line for users.
    """

    __slots__ = ("at", "host", "reason", "times")

    def __init__(self, host: str, reason: str, *, at: int = 0, times: int = 1) -> None:
        self.host = host
        self.reason = reason
        self.at = at
        self.times = times


def pack(text: str) -> str:
    """Return ``text`` with each special byte as ``~`` and three octal digits.

    The result needs no quotes in lists of Grid Engine, ``HOST:name:value``, XML and printf.
    """
    return "".join(
        char if char in _PLAIN else "".join(f"~{byte:03o}" for byte in os.fsencode(char))
        for char in text
    )


def unpack(text: str) -> str:
    """Return the text that :func:`pack` packed; ValueError for any other text."""
    first, *rest = text.split("~")
    data = os.fsencode(first)
    for part in rest:
        if len(part) < 3 or not _OCTAL.issuperset(part[:3]):
            raise ValueError(f"three octal digits do not follow a ~ in {text[:40]!r}")
        data += bytes([int(part[:3], 8)]) + os.fsencode(part[3:])
    return os.fsdecode(data)


def encode(start: FailedStart) -> str:
    """Return ``HOST/AT/TIMES/REASON`` as one word."""
    words = " ".join(start.reason.split())[:_MOST_WORDS]
    while len(pack(words)) > _MOST_PACKED:
        words = words[:-1]
    return f"{start.host}/{start.at}/{start.times}/{pack(words)}"


def find(qstat: str) -> FailedStart | None:
    """Return the last failed start in the output of ``qstat -j JOB``; None if there is none.

    The owner of a job can write any text there. The output is XML if the owner's file .sge_qstat
    has -xml.
    """
    _, found, rest = qstat.partition(f"<VA_variable>{CONTEXT}</VA_variable>")
    if found:
        return decode(rest.partition("<VA_value>")[2].partition("</VA_value>")[0])
    for line in qstat.split("\n"):
        key, _, value = line.partition(":")
        if key.strip() != "context":
            continue
        for item in value.strip().split(","):
            name, _, text = item.partition("=")
            if name == CONTEXT:
                return decode(text)
    return None


def decode(text: str) -> FailedStart | None:
    """Return the failed start in a word of :func:`encode`; None for any other text."""
    host, at, times, packed = (*text.split("/", 3), "", "", "")[:4]
    if not all(
        number.isascii() and number.isdigit() and len(number) < 12 for number in (at, times)
    ):
        return None
    try:
        reason = unpack(packed)
    except ValueError:
        return None
    if not host or not _PLAIN.issuperset(host):
        return None
    shown = "".join(char if char.isprintable() else "?" for char in reason)[:_MOST_WORDS]
    return FailedStart(host, shown, at=int(at), times=int(times))


def tell(what: str, environment: Mapping[str, str]) -> None:
    """Write ``what`` to standard error and to the job's log, and store it in the job's context."""
    host = environment.get("HOSTNAME") or os.uname().nodename
    text = f"sge-jobs: {host}: {what}\n"
    sys.stderr.write(text)
    sys.stderr.flush()
    try:  # noqa: SIM105 (the import of contextlib takes 4 ms)
        append(_log_of(environment), text)
    except (OSError, ValueError):
        pass  # standard error has it too
    job = environment.get("JOB_ID", "")
    if job.isdigit():
        _store(job, host, what, environment)


def _log_of(environment: Mapping[str, str]) -> str:
    """Return the path of the job's own log; empty if standard error already goes to a log."""
    path = unpack(environment.get(LOG, ""))
    task = environment.get("SGE_TASK_ID", "")
    if not path.startswith("/") or not _is_null(2):
        return ""
    return f"{path}.{task}" if task.isdigit() else path


def _is_null(descriptor: int) -> bool:
    return os.fstat(descriptor).st_rdev == os.stat(os.devnull).st_rdev


def append(path: str, text: str) -> None:
    """Append ``text`` to a regular file; nothing for other files. Raises OSError."""
    if not path:
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(path, flags, 0o666)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.write(descriptor, text.encode("utf-8", "replace"))
    finally:
        os.close(descriptor)


def _store(job: str, host: str, what: str, environment: Mapping[str, str]) -> None:
    """Store the reason in the job's context, which its owner may change while it runs."""
    try:
        before = find(ask([find_program("qstat", environment), "-j", job], environment, _WAIT_S))
        times = before.times + 1 if before is not None and before.host == host else 1
        value = encode(FailedStart(host, what, at=int(time.time()), times=times))
        program = find_program("qalter", environment)
        ask([program, "-ac", f"{CONTEXT}={value}", job], environment, _WAIT_S)
    except QueryFailed:
        pass  # the log has the reason
