"""The ranks of a trial on another host than its first: ``python -P -m ...ranks.hosts.agent``.

The first line of standard input is the task; each further line says that the first host lives. At
the end of the input, or without a line for half a minute, all that the agent started ends. The
agent prints a line at its start, and one at its end that tells how its ranks ended. What these
print goes to standard error, which the queue brings to the output of the job.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from spearmint.layout import TrialFolder
from spearmint.trial.languages import signal_name
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.ranks.ends import HostEnds
from spearmint.trial.ranks.hosts.network import address_towards, interface_variables
from spearmint.trial.ranks.hosts.others import STARTED, TOLD
from spearmint.trial.ranks.hosts.relay import Door
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.processes import ENDS, end_descendants
from spearmint.trial.ranks.records import Records

_STEP_S = 0.1
_SILENT_STEPS = 300  # of _STEP_S; counted, so that time in which the host was stopped is not


def main() -> int:
    """Run the ranks of the task; return 0, also if they fail."""
    adopt_orphans()
    told = os.dup(1)
    os.dup2(2, 1)
    os.write(told, STARTED)
    life = _Life()
    task = life.task()
    if task is None:
        return 1
    ends = _run(task, life)
    os.write(told, TOLD + json.dumps(ends.as_json()).encode() + b"\n")
    return 0


def _run(task: dict[str, Any], life: _Life) -> HostEnds:
    os.environ.update(task["environment"])
    folder, n, meeting = TrialFolder(Path(task["folder"])), task["processes"], task["meeting"]
    try:
        address = address_towards(meeting[0])
        door = Door((meeting[0], meeting[1]), bytes.fromhex(task["secret"]))
    except OSError as error:
        return HostEnds(task["host"], failure=f"no network on {task['host']}: {error}")
    door.start()
    with tempfile.TemporaryDirectory(prefix="spearmint-ranks-") as path:
        place = Place(f"{path}/ranks", n, task["node"], task["nodes"], door.port)
        records = Records(folder, place)
        records.clear()
        argv = [sys.executable, "-P", "-m", "spearmint.trial.ranks.guard", str(folder.path), str(n)]
        guard = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            env={**interface_variables(address), **os.environ, **place.variables()},
            start_new_session=True,
            close_fds=False,  # it inherits the lock of the GPU, if there is one
        )
        try:
            life.watch(guard)
        finally:
            guard.communicate()  # closes the pipe, and waits for the end
            end_descendants(0.0)  # if the guard was killed
        ends = HostEnds.of(records, n, task["host"])
        return replace(ends, failure=ends.failure or life.reason(task["host"]))


class _Life:
    """Standard input: the task, then a sign of life each second."""

    def __init__(self) -> None:
        self._is_over, self._text, self._signal = False, b"", 0
        self._poller = select.poll()
        self._poller.register(0, select.POLLIN | select.POLLHUP)
        for number in (*ENDS, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._end if number in ENDS else _ignore)

    def task(self) -> dict[str, Any] | None:
        """Return the first line; None without one."""
        silent, size = 0, 0
        while not self._is_over and silent < _SILENT_STEPS:
            self._listen()
            if b"\n" in self._text:
                found: dict[str, Any] = json.loads(self._text.partition(b"\n")[0])
                return found
            silent, size = (silent + 1 if len(self._text) == size else 0), len(self._text)
        return None

    def watch(self, child: subprocess.Popen[bytes]) -> None:
        """Return when the child has ended, the input ends, or nothing comes any more."""
        silent = 0
        while child.poll() is None and not self._is_over and silent < _SILENT_STEPS:
            self._text = b""
            self._listen()
            silent = 0 if self._text else silent + 1

    def reason(self, host: str) -> str:
        """Return which signal of the queue ended the ranks; empty without one."""
        if not self._signal:
            return ""
        return f"the ranks on {host} were ended by signal {self._signal} " + (
            f"({signal_name(self._signal)})"
        )

    def _listen(self) -> None:
        if self._poller.poll(_STEP_S * 1000):
            part = os.read(0, 65536)
            self._text += part
            self._is_over |= not part

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._is_over, self._signal = True, number


def _ignore(number: int, frame: FrameType | None) -> None:
    """The ranks get such a warning from the queue, which sends it to all processes of a job."""


if __name__ == "__main__":
    sys.exit(main())
