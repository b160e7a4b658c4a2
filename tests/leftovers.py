"""End what a failed test leaves, so that it does not fail the tests after it."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import warnings
import weakref
from collections.abc import Iterator
from typing import Any
from unittest import mock

_KEPT = weakref.WeakSet[subprocess.Popen[Any]]()


@contextlib.contextmanager
def ended_if_failed() -> Iterator[None]:
    """Kill the processes that the block starts, and close their pipes, if the block raises."""
    begun = weakref.WeakSet[subprocess.Popen[Any]]()
    start = subprocess.Popen.__init__

    def noted(process: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
        start(process, *args, **options)
        begun.add(process)

    with mock.patch.object(subprocess.Popen, "__init__", noted):
        try:
            yield
        except BaseException:
            for process in list(begun - _KEPT):
                _end(process)
            raise


def keep(process: subprocess.Popen[Any]) -> None:
    """Do not kill a process that a test started, because its fixture ends it after other tests."""
    _KEPT.add(process)


def _end(process: subprocess.Popen[Any]) -> None:
    process.kill()  # does nothing if it has ended
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):  # a pipe without a reader
                pipe.close()


def forget_failed() -> None:
    """Free what the traceback of a failed test holds, without warnings about open files."""
    if getattr(sys, "last_value", None) is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            if hasattr(sys, name):
                delattr(sys, name)
        gc.collect()
