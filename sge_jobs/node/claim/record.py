"""A record in the file of a GPU: one job that has the GPU, or a share of it.

Only root writes these files, and what the record says of the job comes from Grid Engine and the
kernel, never from variables or files of the user.
"""

from __future__ import annotations

SIZE = 512
WHOLE = 1000
"""The share of a job that has the GPU for itself, in thousandths."""

_TITLE = "sge_jobs lock 2"
_NUMBERS = ("since", "share", "group", "shepherd", "shepherd_started")
_WORDS = ("job", "task", "parallel", "user", "boot")
_LATEST = 2**33  # seconds since the epoch: a date that every C library can format


class Record:
    """A job that has a GPU.

    Attributes:
        task: Number of the array task; empty for a job that is not an array.
        parallel: Name of the task that a parallel job started; empty for the job itself.
        user: Owner of the job.
        since: Time of the claim in seconds since the epoch.
        share: Thousandths of the GPU; :data:`WHOLE` for a GPU that no other job shares.
        group: Additional group that Grid Engine gave the processes of the job; 0 if unknown.
        shepherd, shepherd_started: Grid Engine's process above the job.
        boot: Boot ID of the kernel.
    """

    __slots__ = (*_WORDS, *_NUMBERS)

    def __init__(
        self,
        *,
        job: str,
        user: str,
        boot: str,
        shepherd: int,
        shepherd_started: int,
        task: str = "",
        parallel: str = "",
        since: int = 0,
        share: int = WHOLE,
        group: int = 0,
    ) -> None:
        self.job = job
        self.task = task
        self.parallel = parallel
        self.user = user
        self.boot = boot
        self.since = since
        self.share = share
        self.group = group
        self.shepherd = shepherd
        self.shepherd_started = shepherd_started

    @property
    def label(self) -> str:
        """Job and task as Grid Engine writes them: ``12`` or ``12.3``."""
        return f"{self.job}.{self.task}" if self.task else self.job

    @property
    def identity(self) -> tuple[int, int]:
        """Pid and start of the shepherd: one for each run of a job or parallel task."""
        return self.shepherd, self.shepherd_started

    def same_job(self, other: Record) -> bool:
        """Whether both belong to the same job, or to the same task of an array."""
        return (self.job, self.task) == (other.job, other.task)


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
    if lines[0] != _TITLE or lines[-2:] != ["end", ""]:
        return None
    fields = dict(line.partition(" ")[::2] for line in lines[1:-2])
    if len(lines) != len(fields) + 3 or set(fields) != {*_WORDS, *_NUMBERS}:
        return None
    if not all(_is_number(fields[key]) for key in _NUMBERS) or not fields["job"].isdigit():
        return None
    if (fields["task"] and not fields["task"].isdigit()) or int(fields["since"]) > _LATEST:
        return None
    return Record(
        job=fields["job"], task=fields["task"], parallel=fields["parallel"], user=fields["user"],
        boot=fields["boot"], since=int(fields["since"]), share=int(fields["share"]),
        group=int(fields["group"]), shepherd=int(fields["shepherd"]),
        shepherd_started=int(fields["shepherd_started"]),
    )  # fmt: skip


def _word(text: str) -> str:
    printable = "".join(char if " " < char < "\x7f" else "_" for char in text)
    return printable[:60]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
