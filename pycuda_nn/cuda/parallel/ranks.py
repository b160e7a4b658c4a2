"""Run the same call on every rank, each in a thread of its own for its whole life."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pycuda_nn.errors import DeviceError, OutOfDeviceMemory, PycudaNNError

Worker = TypeVar("Worker")
Answer = TypeVar("Answer")
Call = Callable[[Any], Any]

_LOOK_S = 0.5  # a signal that comes just before a wait does not interrupt it
_STOP_LIMIT_S = 10.0  # for the other ranks, after one failed; their waits end within milliseconds


class RankStopped(Exception):
    """A rank ended because another one failed or because the caller was interrupted."""


class RankFailed(DeviceError):
    """One of several GPUs failed; the others were stopped.

    Attributes:
        rank: The rank that failed.
    """

    def __init__(self, rank: int, gpu: str, what: str, fix: str = "") -> None:
        named = what if what.startswith("GPU ") else f"{gpu}: {what}"
        again = "A training with --checkpoint continues with --resume."
        lines = [fix] if "--resume" in fix else [fix, again]
        super().__init__(f"{named}; the other GPUs were stopped", "\n".join(filter(None, lines)))
        self.rank = rank


class Ranks(Generic[Worker]):
    """A thread for each rank, with the worker that it has made.

    Args:
        gpus: Name of the GPU of each rank, for messages.
        stop: Called once, from any thread, when a rank fails: it must end the waits of the others.
    """

    def __init__(self, gpus: Sequence[str], stop: Callable[[], object]) -> None:
        self._gpus, self._stop = list(gpus), stop
        self._calls: list[queue.SimpleQueue[Call | None]] = [queue.SimpleQueue() for _ in gpus]
        self._answers: queue.SimpleQueue[tuple[int, bool, Any]] = queue.SimpleQueue()
        self._workers: list[Any] = [None] * len(gpus)
        self._lock, self._stopped = threading.Lock(), False
        self._reason: BaseException | None = None
        self._busy: set[int] = set()
        self._threads = [
            threading.Thread(target=self._serve, args=(rank,), name=f"GPU {rank}", daemon=True)
            for rank in range(len(gpus))
        ]
        for thread in self._threads:
            thread.start()

    def make(self, build: Callable[[int], Worker]) -> None:
        """Build the worker of each rank in its thread."""
        self._run(list(range(len(self._threads))), lambda rank: self._keep(rank, build(rank)))

    def each(
        self, call: Callable[[Worker], Answer], only: Sequence[int] | None = None
    ) -> list[Answer]:
        """Return the answer of every rank, in order, after all of them have answered.

        Args:
            call: Called with the worker of the rank, in its thread; all ranks at the same time.
            only: The ranks; all by default.

        Raises:
            RankFailed: A rank failed with an error of this package; the others have ended, too.
        """
        some = list(range(len(self._threads))) if only is None else list(only)
        return self._run(some, lambda rank: call(self._workers[rank]))

    def stop(self, reason: BaseException | None = None) -> None:
        """End the waits of all ranks, once; ``reason`` is raised, not the errors that follow it."""
        with self._lock:
            first, self._stopped = not self._stopped, True
            self._reason = self._reason or reason
        if first:
            self._stop()

    @property
    def stopped(self) -> bool:
        """Whether a rank has failed."""
        return self._stopped

    @property
    def stuck(self) -> bool:
        """Whether a thread has not come back from its last call."""
        return bool(self._busy)

    def end(self) -> None:
        """End the threads, which drop their workers; one that is stuck ends when it comes back."""
        for calls in self._calls:
            calls.put(None)
        for rank, thread in enumerate(self._threads):
            if rank not in self._busy:
                thread.join()

    def _keep(self, rank: int, worker: Worker) -> None:
        self._workers[rank] = worker

    def _run(self, some: Sequence[int], call: Callable[[int], Any]) -> list[Any]:
        answers: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}
        try:
            for rank in some:
                self._busy.add(rank)
                self._calls[rank].put(call)
            self._collect(answers, errors, None)
        except BaseException:  # Ctrl-C: the ranks must not run on
            self.stop()
            self._collect(answers, errors, _STOP_LIMIT_S)
            raise
        if errors or self._busy:
            raise self._first(errors)
        return [answers[rank] for rank in some]

    def _collect(
        self, answers: dict[int, Any], errors: dict[int, BaseException], limit_s: float | None
    ) -> None:
        """Wait for all ranks; once they were stopped, only for a limited time."""
        until = None if limit_s is None else time.monotonic() + limit_s
        while self._busy:
            try:
                rank, good, value = self._answers.get(timeout=_LOOK_S)
            except queue.Empty:
                if self._stopped:
                    until = until or time.monotonic() + _STOP_LIMIT_S
                if until is not None and time.monotonic() > until:
                    return
                continue
            self._busy.discard(rank)
            if good:
                answers[rank] = value
                continue
            errors[rank] = value
            until = until or time.monotonic() + _STOP_LIMIT_S

    def _first(self, errors: dict[int, BaseException]) -> BaseException:
        """Return the error to raise: that of the rank that failed by itself."""
        causes = {r: error for r, error in errors.items() if not isinstance(error, RankStopped)}
        if self._reason is not None:
            return self._reason
        if self._busy:
            return self._stuck_error(causes)
        if not causes:
            return DeviceError("the GPUs were stopped")
        rank, error = next(iter(causes.items()))
        if isinstance(error, RankFailed) or not isinstance(error, PycudaNNError):
            return error
        if isinstance(error, OutOfDeviceMemory):  # its class and its numbers are of use
            error.what = f"{self._gpus[rank]}: {error.what}; the other GPUs were stopped"
            return error
        if error.exit_code == DeviceError.exit_code:
            failed = RankFailed(rank, self._gpus[rank], error.what, error.fix)
            failed.__cause__ = error
            return failed
        return error

    def _stuck_error(self, causes: dict[int, BaseException]) -> RankFailed:
        rank, what = min(self._busy), "does not answer"
        if causes:
            other, error = next(iter(causes.items()))
            what += f" after {self._gpus[other]} failed: {getattr(error, 'what', error)}"
        return RankFailed(rank, self._gpus[rank], what, "Check nvidia-smi.")

    def _serve(self, rank: int) -> None:
        while (call := self._calls[rank].get()) is not None:
            try:
                answer = (rank, True, call(rank))
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                with contextlib.suppress(Exception):
                    self.stop()
                _forget_frames(error)
                answer = (rank, False, error)
            del call
            self._answers.put(answer)
            del answer
        self._workers[rank] = None


def _forget_frames(error: BaseException | None) -> None:
    """Drop the variables of the frames of an error: PyCUDA's objects must end in this thread."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
