"""Pending trials, and the job that has claimed each trial.

A pending trial is a file. A job claims it by a rename, which succeeds for exactly one of several
jobs. This module imports only the standard library, because jobs use it too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from spearmint.layout import TrialFolder, read_json, write_json


class PendingTrials:
    """The pending trials in one directory.

    A token identifies a trial and contains neither a dot nor a dash. A job is identified by the
    queue's id, which can be any text.
    """

    def __init__(self, directory: Path) -> None:
        self._waiting, self._taken = directory / "waiting", directory / "taken"

    def offer(self, token: str, order: int, content: Mapping[str, str]) -> None:
        """Make the trial available to every job; jobs claim the lowest ``order`` first.

        Args:
            content: The data that the job needs: at least the trial's ``folder``.
        """
        for directory in (self._waiting, self._taken):
            directory.mkdir(parents=True, exist_ok=True)
        self.forget(token)
        write_json(self._waiting / f"{order:08d}-{token}", content)

    def forget(self, token: str) -> None:
        """Remove the trial, claimed or not."""
        claims = (self._taken / n for n in _names(self._taken) if n.startswith(f"{token}."))
        for path in (*self._offered(token), *claims):
            path.unlink(missing_ok=True)

    def _offered(self, token: str) -> list[Path]:
        """Return the file of the trial if it is pending."""
        return [self._waiting / n for n in _names(self._waiting) if n.endswith(f"-{token}")]

    def keep(self, tokens: Collection[str]) -> None:
        """Remove all trials except ``tokens``, claimed or not."""
        with contextlib.suppress(OSError):
            for path in (*_listed(self._waiting), *_listed(self._taken)):
                is_claim = path.parent == self._taken
                token = path.name.partition(".")[0] if is_claim else path.name.rpartition("-")[2]
                if token not in tokens:
                    path.unlink(missing_ok=True)

    def withdraw(self, token: str) -> bool:
        """Prevent jobs from claiming the trial; return False if a job has already claimed it."""
        for path in self._offered(token):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                return True
        return token not in self.claims()

    def claims(self) -> dict[str, str]:
        """Return the job that claimed each trial, by the trial's token."""
        return dict(claim for path in _listed(self._taken) if (claim := _parse(path.name)))

    def claim(self, token: str, job: str) -> bool:
        """Claim the trial that ``job`` was submitted for; return False if another job has it.

        A trial that was never offered belongs to the job that was submitted for it.
        """
        for path in self._offered(token):
            if self._take(path, token, job):
                return True
        return self.claims().get(token, job) == job

    def take_next(self, job: str) -> dict[str, Any] | None:
        """Claim the next pending trial for ``job`` and return its content; None if none is pending.

        If the job was restarted, a trial that it had claimed and not finished comes first.
        """
        for path in _listed(self._taken):
            claim = _parse(path.name)
            content = read_json(path) if claim and claim[1] == job else None
            if content is not None and not TrialFolder(Path(content["folder"])).result.exists():
                return content
        for path in _listed(self._waiting):
            token = path.name.rpartition("-")[2]
            if not path.name.startswith(".") and self._take(path, token, job):
                return read_json(self._claimed(token, job))
        return None

    def _take(self, path: Path, token: str, job: str) -> bool:
        try:
            path.rename(self._claimed(token, job))
        except FileNotFoundError:
            return False
        return True

    def _claimed(self, token: str, job: str) -> Path:
        return self._taken / f"{token}.{quote(job, safe='')}"


def _parse(name: str) -> tuple[str, str] | None:
    """Return the token and the job from the file name of a claimed trial."""
    token, dot, job = name.partition(".")
    return (token, unquote(job)) if token and dot else None


def _names(directory: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(directory)  # noqa: PTH208 - Path.glob takes ten times as long
    return []


def _listed(directory: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(directory.iterdir())
    return []
