"""The executor: an interface of ``concurrent.futures`` to every driver."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from types import TracebackType
from typing import Any

from spearmint.drivers import DriverSettings, make_driver
from spearmint.drivers.local import usable_cores
from spearmint.errors import AlreadyRunning, InputError
from spearmint.layout import Layout
from spearmint.resources import Resources
from spearmint.store.lock import ExperimentLock
from spearmint.tasks.dispatcher import Dispatcher
from spearmint.tasks.folder import known_tasks, new_task
from spearmint.tasks.keywords import resources_of
from spearmint.tasks.task import Task

_log = logging.getLogger("spearmint")


def executor(
    driver: str = "local",
    *,
    directory: str | Path = "spearmint_tasks",
    max_concurrent: int | None = None,
    max_retries: int = 1,
    polling_s: float = 3.0,
    **resources: Any,
) -> TaskExecutor:
    """Return an executor that runs each call of a function as a job.

    Args:
        driver: Name of the driver, as in ``--driver``: ``local``, ``SGE`` and so on.
        directory: Directory for the tasks; hosts of a queue must see it under the same path,
            unless HTCondor or Celery transfers files (``file_transfer``).
        max_concurrent: Most jobs at the same time, queued ones included. Default: the cores
            of this machine divided by ``slots``, no limit for a queue.
        max_retries: How often to rerun a task whose job was lost, for example with its host.
        polling_s: Minimum number of seconds between two listings of a queue.
        resources: Resources of each task, by the names in the block ``resources`` of config.pb:
            ``gpus=1``, ``slots=4``, ``walltime="2h"``, ``memory="8G"``.

    Raises:
        InputError: The driver or a resource is unknown, or the directory is in use.

    Example:
        >>> with spearmint.executor(driver="SGE", gpus=1) as executor:
        ...     losses = list(executor.map(train, [0.1, 0.01, 0.001]))
    """
    needed = resources_of(resources)
    return TaskExecutor(
        driver,
        directory=Path(directory),
        max_concurrent=max_concurrent,
        max_retries=max_retries,
        polling_s=polling_s,
        resources=needed,
    )


class TaskExecutor(Executor):
    """Runs functions as jobs; create it by :func:`spearmint.executor`.

    Jobs in a queue continue if this process ends. The next executor with the same directory finds
    them, and ``tasks`` has their results.

    Attributes:
        tasks: All tasks of the directory by their number, finished ones included.
    """

    def __init__(
        self,
        driver: str,
        *,
        directory: Path,
        max_concurrent: int | None,
        max_retries: int,
        polling_s: float,
        resources: Resources,
    ) -> None:
        if max_concurrent is not None and max_concurrent < 1:
            raise InputError("max_concurrent must be at least 1")
        layout = Layout(directory.absolute())
        if layout.database.exists() or (layout.root / "config.pb").exists():
            raise InputError(
                f"{layout.root} has a search", "Choose another directory for the tasks."
            )
        self._layout, self._lock = layout, threading.Lock()
        self._directory_lock = ExperimentLock(layout)
        try:
            self._directory_lock.acquire()
        except AlreadyRunning:
            raise AlreadyRunning(
                f"another executor uses {layout.root}", "Choose another directory."
            ) from None
        self._is_closed = False
        try:
            for folder in (layout.jobs, layout.outputs):
                folder.mkdir(parents=True, exist_ok=True)
            settings = DriverSettings(
                directory=layout.root,
                max_concurrent=max_concurrent or usable_cores(),
                queues_ahead=True,
                polling_s=polling_s,
                resources=resources,
            )
            self._driver = make_driver(driver, settings)
            if max_concurrent is None and not self._driver.detaches:
                max_concurrent = max(1, usable_cores() // resources.slots)
            self._dispatcher = Dispatcher(
                layout,
                self._driver,
                max_concurrent=max_concurrent,
                max_retries=max_retries,
                say=_log.warning,
            )
            self.tasks: dict[int, Task] = {}
            for task in known_tasks(layout):
                self.tasks[task.id] = task
                self._dispatcher.adopt(task)
        except BaseException:
            self._directory_lock.release()
            raise
        self._dispatcher.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Task:
        """Run ``fn(*args, **kwargs)`` as a job and return its future.

        Functions and classes of the main script are sent by value, those of modules by name.

        Raises:
            InputError: The function or an argument cannot be pickled.
            RuntimeError: The executor is shut down.
        """
        with self._lock:
            if self._is_closed:
                raise RuntimeError("cannot submit a task after shutdown")
            id = max(self.tasks, default=0) + 1
            task = new_task(self._layout, id, fn, args, kwargs)
            self.tasks[id] = task
        self._dispatcher.add(task)
        return task

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor.

        Args:
            wait: Wait until all tasks have ended. Otherwise jobs of a queue continue, and local
                ones too.
            cancel_futures: Cancel all tasks that have not ended, also those that run.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if cancel_futures:
            for task in self.tasks.values():
                task.cancel()
        try:
            self._dispatcher.stop(wait=wait or cancel_futures)
        finally:
            self._directory_lock.release()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for all tasks. After an exception, cancel local tasks and leave those of a queue."""
        leaves = error is not None and self._driver.detaches
        self.shutdown(wait=not leaves, cancel_futures=error is not None and not leaves)
