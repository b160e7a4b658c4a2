"""The message about one job: which folder to run. It carries data only, and is signed."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from pathlib import Path

from spearmint.drivers.celery.records import Records, wrong_owner

TASK = "spearmint.trial"
"""Name of the task of Celery."""

_ID = re.compile(r"[0-9a-f]{12}\.[0-9a-f]{12}")


class Refused(Exception):
    """A message that a worker must not run."""


def signature(key: str, queue: str, experiment: str, id: str) -> str:
    """Return the HMAC-SHA256 of a message as hexadecimal digits; empty without a key."""
    if not key:
        return ""
    text = json.dumps([TASK, queue, experiment, id]).encode()
    return hmac.new(key.encode(), text, hashlib.sha256).hexdigest()


def arguments(key: str, queue: str, experiment: Path, id: str) -> list[str]:
    """Return the arguments of the task."""
    return [str(experiment), id, queue, signature(key, queue, str(experiment), id)]


def checked(
    args: object, *, key: str, queues: Sequence[str], roots: Sequence[Path]
) -> tuple[Records, str]:
    """Return the records and the id of the job that a message names.

    Args:
        args: Arguments of the task, from the broker.
        key: Key of this worker.
        queues: The queues of this worker.
        roots: Directories below which experiments may be.

    Raises:
        Refused: The message is not of this user's controllers, or names a forbidden directory.
    """
    if not (
        isinstance(args, list | tuple) and len(args) == 4 and all(isinstance(a, str) for a in args)
    ):
        raise Refused("it has other arguments than a trial")
    experiment, id, queue, signed = args
    if queue not in queues:
        raise Refused(f"it is for queue {queue!r}")
    if not _same(signed, signature(key, queue, experiment, id)):
        raise Refused("its signature is wrong: controller and workers need the same key")
    if not _ID.fullmatch(id):
        raise Refused(f"it names no job: {id!r}")
    return Records(_allowed(experiment, roots)), id


def _allowed(experiment: str, roots: Sequence[Path]) -> Path:
    try:
        path = Path(experiment).resolve(strict=True)
        inside = any(path.is_relative_to(root.resolve()) for root in roots)
        if not inside:
            names = ", ".join(map(str, roots))
            raise Refused(f"{path} is not below the --root of this worker, {names}")
        base = path / ".spearmint" / "celery"
        wrong = wrong_owner([path, base.parent, base, base / "jobs"])
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "the path is invalid"
        raise Refused(f"cannot read experiment {experiment!r}: {reason}") from None
    if wrong:
        raise Refused(wrong)
    return path


def _same(signed: str, expected: str) -> bool:
    return hmac.compare_digest(signed.encode(errors="replace"), expected.encode())
