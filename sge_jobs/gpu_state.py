"""Who uses each GPU of a host, encoded as one word that the load sensor reports.

``qhost -F`` shows the word. An example for two GPUs:

``1+0/GPU-5a/h/12/3/alice/1700000000+1/GPU-7c/o/11//bob/1699990000/s4711.python3``

It has a version, then for each GPU its index, UUID, status, job, task, user, start, and processes
that should not use it (``s`` left by an ended job, ``f`` outside Grid Engine, ``j`` of a job that
has other GPUs). Each character other than letters, digits, ``.``, ``_`` and ``-`` is written as
``~`` and two hexadecimal digits a byte. Therefore, the word needs no quotes in
``HOST:name:value``, in lists, in XML and in printf.

This module runs under Python 3.9 on the nodes.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

MAX_LENGTH = 900
"""Grid Engine 8.1.9 copies a load value into 1000 bytes without checking its length."""

SHARE_SLACK = 0.001
"""What ``gpu_share`` has in addition, against rounding; less than any share."""

_VERSION = "1"
_PLAIN = frozenset(string.ascii_letters + string.digits + "._-")
_HEX = frozenset(string.hexdigits)
_SHORT_UUID = 13
_MAX_GPUS = 256


class GpuStatus(Enum):
    """Whether a GPU can be assigned.

    ``OUTLIVED``: leftover processes of an ended job use it. ``BLOCKED``: a process outside Grid
    Engine uses it, or its lock file is invalid. ``SHARED``: jobs of one user have shares of it.
    ``TURNS``: the same, but its MPS daemon does not run, so the jobs take turns.
    """

    FREE = "f"
    HELD = "h"
    OUTLIVED = "o"
    BLOCKED = "b"
    SHARED = "s"
    TURNS = "t"


@dataclass(frozen=True)
class Intruder:
    """A process on a GPU that does not belong to the job of the GPU.

    Attributes:
        foreign: Whether it never belonged to the job of the GPU; otherwise the GPU's last job left
            it.
        job: Job and task of a foreign process, such as 12.3; empty if it runs outside Grid Engine.
    """

    pid: int
    command: str = ""
    foreign: bool = False
    job: str = ""


@dataclass(frozen=True)
class Share:
    """The share of a GPU that a job has, in thousandths."""

    job: str
    task: str
    thousandths: int


@dataclass(frozen=True)
class GpuUse:
    """One GPU and who uses it.

    Attributes:
        uuid: UUID; only its first characters if the host has too many GPUs for one word.
        job, task, user: The job that has it, or the last job if ``OUTLIVED``; empty if free. If it
            is shared, one of the jobs.
        shares: The jobs that share it.
        since: Start of the job in seconds since the epoch; 0 if free.
    """

    index: int
    uuid: str
    status: GpuStatus = GpuStatus.FREE
    job: str = ""
    task: str = ""
    user: str = ""
    since: int = 0
    intruders: tuple[Intruder, ...] = ()
    shares: tuple[Share, ...] = ()


def encode(gpus: Sequence[GpuUse]) -> str:
    """Return the word, at most :data:`MAX_LENGTH` characters.

    A longer word is shortened: first it omits commands, then processes, then the ends of UUIDs,
    then GPUs, whose number is appended as ``*N``.
    """
    for detail in range(4):
        parts = [_encode_gpu(gpu, detail) for gpu in gpus]
        word = "+".join([_VERSION, *parts])
        if len(word) <= MAX_LENGTH:
            return word
    while len(word) > MAX_LENGTH:
        parts.pop()
        word = "+".join([_VERSION, *parts, f"*{len(gpus) - len(parts)}"])
    return word


def _encode_gpu(gpu: GpuUse, detail: int) -> str:
    uuid = gpu.uuid if detail < 3 else gpu.uuid[:_SHORT_UUID]
    since = str(gpu.since) if gpu.since else ""
    words = [str(gpu.index), uuid, gpu.status.value, gpu.job, gpu.task, gpu.user, since]
    fields = [_escape(word) for word in words]
    if detail < 3:
        fields += [f"p{share.job}.{share.task}.{share.thousandths}" for share in gpu.shares]
    if detail < 2:
        shown = gpu.intruders if detail == 0 else gpu.intruders[:4]
        fields += [_encode_intruder(intruder, detail == 0) for intruder in shown]
    return "/".join(fields)


def _encode_intruder(intruder: Intruder, with_command: bool) -> str:
    command = _escape(intruder.command[:30]) if with_command else ""
    if intruder.job:
        return f"j{intruder.pid}.{_escape(intruder.job.replace('.', '-'))}.{command}"
    return f"{'f' if intruder.foreign else 's'}{intruder.pid}.{command}"


def decode(word: str) -> tuple[GpuUse, ...]:
    """Return the GPUs in a word of :func:`encode`, without the omitted ones.

    Raises:
        ValueError: The word has another format, or it is too long.
    """
    parts, _ = _parts(word)
    return tuple(_decode_gpu(part) for part in parts)


def count(word: str) -> int:
    """Return the number of GPUs of the host, including those that :func:`encode` omitted.

    Raises:
        ValueError: As for :func:`decode`.
    """
    return len(decode(word)) + _parts(word)[1]


def _parts(word: str) -> tuple[list[str], int]:
    if len(word) > MAX_LENGTH:
        raise ValueError(f"a GPU state has at most {MAX_LENGTH} characters, not {len(word)}")
    version, *parts = word.split("+")
    if version != _VERSION:
        raise ValueError(f"unknown version '{version[:20]}' of a GPU state")
    left_out = _number(parts.pop()[1:]) if parts and parts[-1].startswith("*") else 0
    if len(parts) + left_out > _MAX_GPUS:
        raise ValueError(f"a host has at most {_MAX_GPUS} GPUs, not {len(parts) + left_out}")
    return parts, left_out


def _decode_gpu(text: str) -> GpuUse:
    fields = text.split("/")
    if len(fields) < 7:
        raise ValueError(f"'{text[:40]}' has {len(fields)} fields, expected at least 7")
    index, uuid, status, job, task, user, since = (_unescape(field) for field in fields[:7])
    if not uuid:
        raise ValueError(f"'{text[:40]}' has no UUID")
    if (job and not job.isdigit()) or (task and not task.isdigit()):
        raise ValueError(f"'{text[:40]}': job and task must be numbers")
    return GpuUse(
        index=_number(index),
        uuid=uuid,
        status=GpuStatus(status),
        job=job,
        task=task,
        user=user,
        since=_number(since) if since else 0,
        intruders=tuple(_decode_intruders(field for field in fields[7:] if field[:1] != "p")),
        shares=tuple(_decode_share(field) for field in fields[7:] if field[:1] == "p"),
    )


def _decode_share(field: str) -> Share:
    job, task, share = (*field[1:].split(".", 2), "", "")[:3]
    return Share(
        job=str(_number(job)), task=str(_number(task)) if task else "", thousandths=_number(share)
    )


def _decode_intruders(fields: Iterable[str]) -> Iterable[Intruder]:
    for field in fields:
        pid, mark, command = field[1:].partition(".")
        if field[:1] not in ("s", "f", "j") or not mark:
            raise ValueError(f"'{field[:40]}' is not a process")
        job, command = command.split(".", 1) if field[0] == "j" else ("", command)
        yield Intruder(
            pid=_number(pid),
            command=_unescape(command),
            foreign=field[0] != "s",
            job=_label(job) if job else "",
        )


def _label(text: str) -> str:
    job, mark, task = text.partition("-")
    return f"{_number(job)}.{_number(task)}" if mark else str(_number(job))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"'{text[:20]}' is not a number")
    return int(text)


def _escape(text: str) -> str:
    return "".join(
        char
        if char in _PLAIN
        else "".join(f"~{byte:02x}" for byte in char.encode(errors="replace"))
        for char in text
    )


def _unescape(text: str) -> str:
    plain, *escaped = text.split("~")
    data = plain.encode()
    for piece in escaped:
        if len(piece) < 2 or not _HEX.issuperset(piece[:2]):
            raise ValueError(f"'{text[:40]}' has a ~ that two hexadecimal digits do not follow")
        data += bytes.fromhex(piece[:2]) + piece[2:].encode()
    if not _PLAIN.issuperset("".join([plain, *(piece[2:] for piece in escaped)])):
        raise ValueError(f"'{text[:40]}' has characters that must be escaped")
    decoded = data.decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "?" for char in decoded)
