"""The message about one job: which folder to run. It carries data only, and is signed."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spearmint.drivers.celery.post.names import is_search
from spearmint.drivers.celery.records import Records, wrong_owner

TASK = "spearmint.trial"
"""Name of the task of Celery."""

_ID = re.compile(r"[0-9a-f]{12}\.[0-9a-f]{12}")


class Refused(Exception):
    """A message that a worker must not run."""


class NotHere(Refused):
    """A message about an experiment that is not below a root of this worker."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that this user's controllers sent.

    Attributes:
        id: Id of the job.
        experiment: Directory of the experiment; empty if only its files are sent.
        search: Name of the search that sends files to other hosts; empty if it does not.
    """

    id: str
    experiment: str
    search: str

    def records(self, roots: Sequence[Path]) -> Records:
        """Return the records of the experiment.

        Raises:
            NotHere: It is not below one of ``roots``.
            Refused: Others can write its directory.
        """
        if not self.experiment:
            raise NotHere("its experiment is on another host")
        records = Records(_allowed(self.experiment, roots))
        if self.search and self.search != records.search():
            raise NotHere(f"{self.experiment} is another directory here")
        return records


def signature(key: str, content: Sequence[str]) -> str:
    """Return the HMAC-SHA256 of a message as hexadecimal digits; empty without a key."""
    if not key:
        return ""
    text = json.dumps([TASK, *content]).encode()
    return hmac.new(key.encode(), text, hashlib.sha256).hexdigest()


def arguments(
    key: str, queue: str, experiment: Path | None, id: str, search: str = ""
) -> list[str]:
    """Return the arguments of the task.

    Args:
        key: Key of signatures.
        queue: Name of the queue.
        experiment: Directory of the experiment; None if no worker must use it.
        id: Id of the job.
        search: Name of the search, for workers that do not have the directory.
    """
    content = [str(experiment or ""), id, queue, search]
    return [*content, signature(key, content)]


def checked(args: object, *, key: str, queues: Sequence[str]) -> Message:
    """Return the message.

    Args:
        args: Arguments of the task, from the broker.
        key: Key of this worker.
        queues: The queues of this worker.

    Raises:
        Refused: The message is not of this user's controllers.
    """
    if not (
        isinstance(args, list | tuple) and len(args) == 5 and all(isinstance(a, str) for a in args)
    ):
        raise Refused("it has other arguments than a trial")
    experiment, id, queue, search, signed = args
    if queue not in queues:
        raise Refused(f"it is for queue {queue!r}")
    if not _same(signed, signature(key, args[:4])):
        raise Refused("its signature is wrong: controller and workers need the same key")
    if not _ID.fullmatch(id) or not (is_search(search) or not search):
        raise Refused(f"it names no job: {id!r}")
    return Message(id, experiment, search)


def _allowed(experiment: str, roots: Sequence[Path]) -> Path:
    try:
        path = Path(experiment).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "the path is invalid"
        raise NotHere(f"cannot read experiment {experiment!r}: {reason}") from None
    if not any(path.is_relative_to(root.resolve()) for root in roots):
        names = ", ".join(map(str, roots))
        raise NotHere(f"{path} is not below the --root of this worker, {names}")
    base = path / ".spearmint" / "celery"
    try:
        wrong = wrong_owner([path, base.parent, base, base / "jobs"])
    except OSError as error:
        raise NotHere(f"cannot read experiment {experiment!r}: {error.strerror}") from None
    if wrong:
        raise Refused(wrong)
    return path


def _same(signed: str, expected: str) -> bool:
    return hmac.compare_digest(signed.encode(errors="replace"), expected.encode())
