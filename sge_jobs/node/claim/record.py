"""The record that a job writes into the lock file of its GPU.

Any user can write such a file, so readers validate everything in it.
"""

from __future__ import annotations

SIZE = 512
_TITLE = "sge_jobs lock 1"
_NUMBERS = ("since", "group", "pid", "shepherd", "shepherd_started")
_WORDS = ("job", "task", "user", "boot")
_LATEST = 2**33  # seconds since the epoch: a date that every C library can format


class Record:
    """The job that claimed a GPU.

    Attributes:
        task: Number of the array task; empty for a job that is not an array.
        since: Time of the claim in seconds since the epoch.
        group: Additional group that Grid Engine gave the processes of the job; 0 if unknown.
        pid: First process of the job.
        shepherd, shepherd_started: Grid Engine's process above the job; 0 if unknown.
        boot: Boot ID of the kernel.
    """

    __slots__ = (*_WORDS, *_NUMBERS)

    def __init__(
        self,
        *,
        job: str,
        user: str,
        boot: str,
        task: str = "",
        since: int = 0,
        group: int = 0,
        pid: int = 0,
        shepherd: int = 0,
        shepherd_started: int = 0,
    ) -> None:
        self.job = job
        self.task = task
        self.user = user
        self.boot = boot
        self.since = since
        self.group = group
        self.pid = pid
        self.shepherd = shepherd
        self.shepherd_started = shepherd_started

    @property
    def label(self) -> str:
        """Job and task as Grid Engine writes them: ``12`` or ``12.3``."""
        return f"{self.job}.{self.task}" if self.task else self.job

    def same_job(self, other: Record) -> bool:
        """Whether both belong to the same job, or to the same task of an array."""
        return (self.job, self.task, self.user, self.boot) == (
            other.job, other.task, other.user, other.boot,
        )  # fmt: skip


def encode(record: Record) -> bytes:
    """Return ``SIZE`` bytes, so that one write replaces any earlier record completely."""
    lines = [_TITLE]
    lines += [f"{key} {_word(getattr(record, key))}" for key in _WORDS]
    lines += [f"{key} {getattr(record, key)}" for key in _NUMBERS]
    text = ("\n".join(lines) + "\nend\n").encode()
    return text.ljust(SIZE)[:SIZE]


def decode(data: bytes) -> Record | None:
    """Return the record in ``data``; None if it is empty, truncated or has another format."""
    try:
        lines = data[:SIZE].decode("ascii").rstrip(" ").split("\n")
    except UnicodeDecodeError:
        return None
    if len(lines) != 12 or lines[0] != _TITLE or lines[-2:] != ["end", ""]:
        return None
    fields = dict(line.partition(" ")[::2] for line in lines[1:-2])
    if len(fields) != 9 or not all(key in fields for key in (*_WORDS, *_NUMBERS)):
        return None
    if not all(_is_number(fields[key]) for key in _NUMBERS) or not fields["job"]:
        return None
    if any(_word(fields[key]) != fields[key] for key in _WORDS):
        return None
    if (fields["task"] and not fields["task"].isdigit()) or int(fields["since"]) > _LATEST:
        return None
    return Record(
        job=fields["job"], task=fields["task"], user=fields["user"], boot=fields["boot"],
        since=int(fields["since"]), group=int(fields["group"]), pid=int(fields["pid"]),
        shepherd=int(fields["shepherd"]), shepherd_started=int(fields["shepherd_started"]),
    )  # fmt: skip


def _word(text: str) -> str:
    printable = "".join(char if " " < char < "\x7f" else "_" for char in text)
    return printable[:60]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
