"""Work on many nodes concurrently; used by plugins (``self.pool``) and by the setup."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from starcluster.errors import SetupError, StarClusterError

T = TypeVar("T")
SIZE = 64
"""Maximal number of threads; they mostly wait for nodes."""


@dataclass(slots=True, kw_only=True)
class _Job:
    name: str
    work: Callable[[], Any]
    result: Any = None
    error: BaseException | None = None


class ThreadPool:
    """A pool of daemon threads, so that Ctrl-C never waits for a node."""

    def __init__(self, size: int = SIZE) -> None:
        """Prepare the pool; threads start with the first jobs."""
        self._size = size
        self._waiting: deque[_Job] = deque()
        self._given: list[_Job] = []
        self._open = 0
        self._threads = 0
        self._changed = threading.Condition()

    def simple_job(
        self,
        method: Callable[..., Any],
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        jobid: str | None = None,
    ) -> None:
        """Start ``method(*args, **kwargs)``; ``args`` other than a tuple or list is one argument.

        Args:
            jobid: Alias of a node, so that a failure names the node.
        """
        given = tuple(args) if isinstance(args, tuple | list) else (args,)
        named = dict(kwargs or {})
        name = jobid or getattr(method, "__name__", "job")
        self._add(_Job(name=str(name), work=lambda: method(*given, **named)))

    def map(
        self,
        fn: Callable[..., Any],
        *seq: Iterable[Any],
        jobid_fn: Callable[..., str] | None = None,
    ) -> list[Any]:
        """Return ``fn`` of each item, in the order of ``seq``; failures name nodes by alias."""
        for items in zip(*seq, strict=True):
            name = jobid_fn(*items) if jobid_fn else getattr(items[0], "alias", None)
            self.simple_job(fn, items, jobid=name)
        return self.wait()

    def wait(self, numtasks: int | None = None, return_results: bool = True) -> list[Any]:
        """Wait for all jobs; return their results in the order in which they were added.

        Raises:
            SetupError: Jobs failed; it names all of them.
        """
        with self._changed:
            while self._open:
                self._changed.wait(1.0)
            done, self._given = self._given, []
        failed = {job.name: job.error for job in done if job.error is not None}
        for error in failed.values():
            if error is not None and not isinstance(error, StarClusterError | OSError):
                raise error
        if failed:
            reasons = {
                name: _words(error).removeprefix(f"{name}: ") for name, error in failed.items()
            }
            raise failures(reasons, len(done))
        return [job.result for job in done] if return_results else []

    def shutdown(self) -> None:
        """Drop the jobs that have not started."""
        with self._changed:
            self._open -= len(self._waiting)
            self._waiting.clear()

    def _add(self, job: _Job) -> None:
        with self._changed:
            self._given.append(job)
            self._waiting.append(job)
            self._open += 1
            if self._threads < min(self._size, self._open):
                self._threads += 1
                threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._threads -= 1
                    return
                job = self._waiting.popleft()
            try:
                job.result = job.work()
            except BaseException as error:  # noqa: BLE001 - wait() raises it
                job.error = error
            with self._changed:
                self._open -= 1
                self._changed.notify_all()


def get_thread_pool(
    size: int = 10, worker_factory: object = None, disable_threads: bool = False
) -> ThreadPool:
    """Return a pool of ``size`` threads, or of one if ``disable_threads``.

    Plugins for the original call it; ``worker_factory`` is ignored.
    """
    return ThreadPool(1 if disable_threads else int(size))


def failures(failed: Mapping[str, str], count: int) -> SetupError:
    """Return the error that names the ``failed`` nodes, of ``count`` nodes in total."""
    lines = "".join(f"\n  {name}: {why}" for name, why in sorted(failed.items()))
    return SetupError(f"{len(failed)} of {count} nodes failed{lines}", failed=failed)


def _words(error: BaseException | None) -> str:
    return error.what if isinstance(error, StarClusterError) else f"{error}"


def soon(work: Callable[[], T], *, within_s: float, otherwise: T) -> T:
    """Return the result of ``work``, or ``otherwise`` if it takes longer or fails."""
    done: list[T] = []

    def body() -> None:
        with contextlib.suppress(StarClusterError):
            done.append(work())

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(within_s)
    return done[0] if done else otherwise
