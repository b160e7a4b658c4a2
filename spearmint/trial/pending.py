"""Trials that wait in the queue, for a job that has just finished one to go on with.

A ticket is a file that is renamed by the job that takes it: of any number of jobs one gets it.
Standard library only; jobs use it too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.layout import TrialFolder, read_json, write_json


class Tickets:
    """The tickets in one directory.

    A token stands for one trial, a job for whoever runs trials; neither has a dot or a dash.
    """

    def __init__(self, directory: Path) -> None:
        self._waiting, self._taken = directory / "waiting", directory / "taken"

    def offer(self, token: str, order: int, content: Mapping[str, str]) -> None:
        """Let any job take the trial; of several, the one with the lowest ``order`` first.

        Args:
            content: For the job: at least the trial's ``folder``.
        """
        for directory in (self._waiting, self._taken):
            directory.mkdir(parents=True, exist_ok=True)
        self.clear(token)
        write_json(self._waiting / f"{order:08d}-{token}", content)

    def clear(self, token: str) -> None:
        """Forget the trial, taken or not."""
        for path in (*self._waiting.glob(f"*-{token}"), *self._taken.glob(f"{token}.*")):
            path.unlink(missing_ok=True)

    def withdraw(self, token: str) -> bool:
        """Let nobody take the trial any more; False when a job has taken it."""
        for path in self._waiting.glob(f"*-{token}"):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                return True
        return token not in self.takers()

    def takers(self) -> dict[str, str]:
        """Return the job of every trial that was taken."""
        names = [path.name for path in _listed(self._taken)]
        return dict(name.split(".", 1) for name in names if "." in name)

    def claim(self, token: str, job: str) -> bool:
        """Take the trial that ``job`` was submitted for; False when another job has it.

        A trial that was never offered is its job's own.
        """
        for path in self._waiting.glob(f"*-{token}"):
            if self._take(path, token, job):
                return True
        return self.takers().get(token, job) == job

    def take_next(self, job: str) -> dict[str, Any] | None:
        """Return the ticket of a trial that is now ``job``'s; None when none waits.

        One that it took before it was started again, and did not finish, comes first.
        """
        for path in _listed(self._taken):
            ticket = read_json(path) if path.name.endswith(f".{job}") else None
            if ticket is not None and not TrialFolder(Path(ticket["folder"])).result.exists():
                return ticket
        for path in _listed(self._waiting):
            token = path.name.rpartition("-")[2]
            if not path.name.startswith(".") and self._take(path, token, job):
                return read_json(self._taken / f"{token}.{job}")
        return None

    def _take(self, path: Path, token: str, job: str) -> bool:
        try:
            path.rename(self._taken / f"{token}.{job}")
        except FileNotFoundError:
            return False
        return True


def _listed(directory: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(directory.iterdir())
    return []
