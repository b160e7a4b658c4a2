"""Run a worker that times cases one after another; a crash or a hang costs only its case.

A worker is started with one JSON argument, which has the numbers of the cases in ``todo``. It
prints JSON objects, one a line: ``{"begin": N}``, then results ``{"case": N, ...}``, then
``{"done": N}``. It ends when its standard input ends: no worker runs on after a kill of this
process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

# The last line of a traceback; torchrun's own summary has no text behind the colon.
_ERROR = re.compile(r"^(?:\[rank\d+\]: *)?([\w.]*(?:Error|Exception): \S.*)$", re.MULTILINE)

Line = dict[str, Any]
Command = Callable[[Sequence[int]], list[str]]

_START_LIMIT_S = 120.0  # imports and NCCL on a busy machine
_END_S = 5.0
# On a virtual machine with a share of a host's GPUs, NVLink multicast can take all of them out of
# service. The report says that it is off.
MULTICAST_OFF = {
    "NCCL_NVLS_ENABLE": "0",
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
}


def run_cases(command: Command, n: int, limit_s: float) -> Iterator[Line]:
    """Yield the lines of workers until each of the ``n`` cases has ended.

    A case that ends its worker, or is silent for ``limit_s`` seconds, yields ``{"case": N,
    "error": TEXT}``, and the next worker continues behind it. If a worker ends before its first
    case, all remaining cases have its error.
    """
    todo = list(range(n))
    while todo:
        worker = _Worker(command(todo))
        try:
            yield from worker.lines(limit_s)
        finally:
            worker.end()
        if not worker.begun:
            yield from ({"case": number, "error": worker.problem} for number in todo)
            return
        failed = worker.begun - worker.done
        yield from ({"case": number, "error": worker.problem} for number in sorted(failed))
        todo = [number for number in todo if number not in worker.begun]


class _Worker:
    """One process and the numbers of its cases so far."""

    def __init__(self, command: list[str]) -> None:
        self.begun: set[int] = set()
        self.done: set[int] = set()
        self.problem = ""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **MULTICAST_OFF},
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - for mypy
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_read, args=(self._process.stdout, self._lines), daemon=True
        )
        reader.start()

    def lines(self, limit_s: float) -> Iterator[Line]:
        """Yield results until the process ends or is silent for too long."""
        while True:
            limit = limit_s if self.begun else max(limit_s, _START_LIMIT_S)
            try:
                text = self._lines.get(timeout=limit)
            except queue.Empty:
                self.problem = f"stopped: no result within {limit:.0f} s"
                return
            if text is None:
                code = self._process.wait()
                self.problem = self._last_error() or f"the process ended with exit code {code}"
                return
            yield from self._take(text)

    def _take(self, text: bytes) -> Iterator[Line]:
        if not text.startswith(b"{"):
            return
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if "begin" in line:
                self.begun.add(line["begin"])
            elif "done" in line:
                self.done.add(line["done"])
            else:
                yield line

    def _last_error(self) -> str:
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        named = _ERROR.findall(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return (named or lines or [""])[-1][:300]

    def end(self) -> None:
        """Let the process end, and kill it and its children if it does not."""
        process = self._process
        assert process.stdin is not None  # noqa: S101 - for mypy
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._errors.close()


def _read(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)
