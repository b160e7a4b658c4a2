"""A thread that submits tasks, follows their jobs, and gives them their results."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from spearmint.drivers import Driver, Job, JobRequest, JobState
from spearmint.errors import DriverUnreachable, QueueFull, SpearmintError
from spearmint.layout import Layout
from spearmint.tasks.folder import failure, store_losses, take_result
from spearmint.tasks.task import Task

_STEP_S = 0.2
_RETRY_S = 5.0  # after the queue did not answer, or was full
_VALUE_S = 60.0  # how long a network file system can hide a file that another host has written


class Dispatcher:
    """Runs the tasks of one executor.

    Args:
        layout: Paths of the directory of the tasks.
        driver: Runs the jobs.
        max_concurrent: Most jobs at the same time, queued ones included; None for no limit.
        max_retries: how often a task is rerun whose job ended without a result.
        say: Called with messages for users.
    """

    def __init__(
        self,
        layout: Layout,
        driver: Driver,
        *,
        max_concurrent: int | None,
        max_retries: int,
        say: Callable[[str], None],
    ) -> None:
        self._layout, self._driver, self._say = layout, driver, say
        self._max_concurrent, self._max_retries = max_concurrent, max_retries
        self._waiting: deque[Task] = deque()
        self._running: dict[Job, Task] = {}
        self._settling: dict[Task, float] = {}  # tasks whose value is not visible yet, since when
        self._retry_at = 0.0
        self._wakes = threading.Event()
        self._leaves = self._drains = False
        self._thread = threading.Thread(target=self._run, name="spearmint-tasks", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, task: Task) -> None:
        """Run a task."""
        self._waiting.append(task)
        self._wakes.set()

    def adopt(self, task: Task) -> None:
        """Continue a task of an earlier executor. Raises DriverUnreachable."""
        if take_result(self._layout, task):
            return
        task.job = self._driver.adopt(self._layout.folder(task.id))
        if task.cancelled():
            self._end([task])
        elif task.job is None and not take_result(self._layout, task):
            self._waiting.append(task)
        elif task.job is not None:
            self._running[task.job] = task

    def stop(self, *, wait: bool) -> None:
        """End the thread: after the last task, or at once, while jobs continue."""
        self._drains = True
        self._leaves = self._leaves or not wait
        self._wakes.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._leaves:
            self._wakes.clear()
            try:
                self._step()
            except DriverUnreachable as error:
                self._say(f"{error.what}. Retrying in {_RETRY_S:g} s.")
                self._wakes.wait(_RETRY_S)
            except (SpearmintError, OSError) as error:
                self._say(f"{error}. Retrying in {_RETRY_S:g} s.")
                self._wakes.wait(_RETRY_S)
            if self._drains and not (self._waiting or self._running or self._settling):
                return
            if self._running:
                self._driver.wait(self._running.keys(), _STEP_S)
            elif not self._waiting or time.monotonic() < self._retry_at:
                self._wakes.wait(_STEP_S if self._waiting or self._settling else None)

    def _step(self) -> None:
        self._cancel()
        self._submit()
        if self._running:
            self._follow()
        for task in list(self._settling):
            self._settle(task)
        for text in self._driver.notices():
            self._say(text)

    def _cancel(self) -> None:
        cancelled = [each for each in self._running.values() if each.cancelled()]
        if cancelled:
            self._end(cancelled)

    def _end(self, tasks: list[Task]) -> None:
        jobs = [task.job for task in tasks if task.job is not None]
        for task in tasks:
            store_losses(self._layout, task)
        self._driver.cancel(jobs)
        for job in jobs:
            self._running.pop(job, None)

    def _submit(self) -> None:
        while self._waiting and time.monotonic() >= self._retry_at:
            if self._max_concurrent is not None and self._active() >= self._max_concurrent:
                return
            task = self._waiting[0]
            if task.cancelled():
                store_losses(self._layout, task)
            elif not self._submit_one(task):
                return
            self._waiting.popleft()
            if self._leaves:
                return

    def _active(self) -> int:
        return sum(not task.done() for task in self._running.values())

    def _submit_one(self, task: Task) -> bool:
        """Submit a task, or fail it; return False to retry it later."""
        request = JobRequest(
            name=f"{task.name}-{task.id}",
            folder=self._layout.folder(task.id),
            directory=self._layout.root,
            output=task.output,
        )
        try:
            task.job = self._driver.submit(request)
        except (DriverUnreachable, QueueFull) as error:
            self._say(f"{error.what}. Retrying in {_RETRY_S:g} s.")
            self._retry_at = time.monotonic() + _RETRY_S
            return False
        except SpearmintError as error:
            task.fail(error)
        else:
            self._running[task.job] = task
        return True

    def _follow(self) -> None:
        for job, state in self._driver.poll(list(self._running)).items():
            task = self._running[job]
            task.is_alive = state in (JobState.ALIVE, JobState.FINISHED)
            if state is JobState.GONE:
                self._driver.cancel([job])  # processes that the function left
                del self._running[job]
                if not task.done():
                    self._settle(task)
            elif state is JobState.FINISHED and not task.done():
                self._settle(task, is_over=False)

    def _settle(self, task: Task, *, is_over: bool = True) -> None:
        """Give a task its result; submit it again if its job was lost."""
        since = self._settling.setdefault(task, time.monotonic())
        try:
            has_result = take_result(self._layout, task)
        except FileNotFoundError as error:
            if time.monotonic() - since < _VALUE_S:
                return
            task.fail(failure(f"its value disappeared: {error}", task))
            has_result = True
        if not has_result and is_over:
            self._retry(task)
        del self._settling[task]

    def _retry(self, task: Task) -> None:
        assert task.job is not None  # noqa: S101 - only tasks with a job can be lost
        end = self._driver.explain(task.job)
        task.lost += end.counts
        store_losses(self._layout, task)
        if not end.again or task.lost > self._max_retries:
            times = f", {task.lost} times" if task.lost > 1 else ""
            task.fail(failure(end.text + times, task))
        elif not task.cancelled():
            self._say(f"Task {task.id} was lost ({end.text}). Retrying.")
            self._waiting.appendleft(task)
