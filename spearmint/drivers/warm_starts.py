"""The warm processes of a driver; see :mod:`spearmint.trial.warm.process`."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from spearmint.layout import PROCESSES, TrialFolder, read_json
from spearmint.trial.warm.client import EXITED, Started, WarmProcess
from spearmint.trial.warm.messages import CHANGED

_IMPORT_S = 10.0  # how long a trial waits for the imports; it would import as long itself


class WarmStarts:
    """The warm processes of one driver, one for each module of users.

    Until a process is ready, and where none can be used, trials start in new processes.
    """

    def __init__(self) -> None:
        self._processes: dict[tuple[str, str], WarmProcess] = {}
        self._waited_for: weakref.WeakSet[WarmProcess] = weakref.WeakSet()
        self._notices: list[str] = []
        self._said: set[str] = set()

    def take(self) -> list[str]:
        """Return new messages: why trials cannot start from a warm process."""
        found, self._notices = self._notices, []
        return found

    def process_for(
        self, folder: TrialFolder, environment: Mapping[str, str]
    ) -> WarmProcess | None:
        """Return the process for a trial; None if the trial cannot use one.

        Args:
            folder: The trial.
            environment: Environment variables of a new process.
        """
        spec = read_json(folder.spec) or {}
        if spec.get("language") != "PYTHON" or spec.get(PROCESSES):
            return None
        return self.begin(Path(spec["directory"]), str(spec["name"]), environment)

    def begin(
        self, directory: Path, name: str, environment: Mapping[str, str]
    ) -> WarmProcess | None:
        """Start to import what NAME.py in ``directory`` imports; None if trials cannot be forked.

        Args:
            directory: The experiment's directory.
            name: Name of the user's module.
            environment: Environment variables of a new process.
        """
        if sys.platform != "linux":
            return None
        key = (str(directory), name)
        found = self._processes.get(key)
        if found is not None and not found.is_ready() and found.problem in (CHANGED, EXITED):
            found = None
        if found is None:
            found = self._processes[key] = WarmProcess(*key, environment)
        return found

    def start(
        self,
        folder: TrialFolder,
        environment: Mapping[str, str],
        warm_environment: Mapping[str, str],
        fds: Sequence[int],
    ) -> Started | None:
        """Fork the runner of a trial; return None if it must start in a new process.

        Args:
            folder: The trial.
            environment: Environment variables of the runner.
            warm_environment: Those of the warm process.
            fds: The trial's output and its lock.

        Raises:
            TimeoutError: It is unknown whether the trial starts; its lock tells.
        """
        process = self.process_for(folder, warm_environment)
        if process is None or not self._is_ready(process):
            if process is not None and process.problem not in {"", CHANGED, EXITED, *self._said}:
                self._said.add(process.problem)
                self._notices.append(f"Each trial starts a new process: {process.problem}.")
            return None
        request = {"folder": str(folder.path), "environment": dict(environment)}
        return process.fork(request, fds)

    def _is_ready(self, process: WarmProcess) -> bool:
        """Return whether a process has imported; only the first trial waits for it."""
        timeout_s = 0.0 if process in self._waited_for else _IMPORT_S
        self._waited_for.add(process)
        return process.is_ready(timeout_s)
