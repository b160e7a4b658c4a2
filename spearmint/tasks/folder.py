"""The files of a task, in the folder of a trial."""

from __future__ import annotations

import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spearmint.controller.outcomes import tail_of
from spearmint.errors import InputError
from spearmint.layout import Layout, TrialFolder, read_json, write_json
from spearmint.tasks.task import Task, TaskFailed
from spearmint.trial import function_pickle
from spearmint.trial.function_call import (
    PYTHON,
    function_file,
    read_private,
    value_file,
    write_private,
)
from spearmint.trial.results import read_result


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function in messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def pickled(name: str, value: object) -> bytes:
    """Return a pickle of ``value``, which contains the function ``name``.

    Functions and classes of the main script or notebook are pickled by value.

    Raises:
        InputError: The function or an object that it uses cannot be pickled.
    """
    try:
        return function_pickle.pickled(value)
    except Exception as error:
        raise InputError(
            f"cannot send {name} to a job: {error}",
            "Open files, connections and devices inside of the function.",
        ) from error


def import_paths() -> list[str]:
    """Return the directories from which this process imports modules, as absolute paths."""
    return [os.path.abspath(path) for path in sys.path if path != ""]  # noqa: PTH100


def new_task(
    layout: Layout,
    id: int,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> Task:
    """Write the folder of a task, its description last, and return the task.

    Raises:
        InputError: The function or an argument cannot be pickled.
    """
    name = name_of(function)
    content = pickled(name, (function, tuple(arguments), dict(named)))
    folder = layout.folder(id)
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(function_file(folder), content)
    key = uuid.uuid4().hex
    spec: dict[str, Any] = {
        "key": key,
        "job_id": id,
        "directory": str(Path.cwd()),
        "name": name,
        "language": "FUNCTION",
        "params": {},
        "python": PYTHON,
        "path": import_paths(),
    }
    write_json(folder.spec, spec, durable=True)
    return Task(id, name, key, layout.output(id))


def known_tasks(layout: Layout) -> Iterator[Task]:
    """Yield the tasks of an earlier executor; a task without description was never submitted."""
    if not layout.jobs.is_dir():
        return
    for path in sorted(layout.jobs.iterdir()):
        spec = read_json(TrialFolder(path).spec)
        if spec is None or spec.get("language") != "FUNCTION":
            continue
        id = int(spec["job_id"])
        losses = read_json(_losses(TrialFolder(path))) or {}
        task = Task(id, spec["name"], spec["key"], layout.output(id), lost=losses.get("lost", 0))
        if losses.get("cancelled"):
            task.cancel()
        yield task


def store_losses(layout: Layout, task: Task) -> None:
    """Store how often the job of a task was lost, and whether the task was cancelled."""
    state = {"lost": task.lost, "cancelled": task.cancelled()}
    write_json(_losses(layout.folder(task.id)), state)


def _losses(folder: TrialFolder) -> Path:
    return folder.path / "losses.json"


def take_result(layout: Layout, task: Task) -> bool:
    """Give a task the result in its folder; return False if there is none.

    Raises:
        FileNotFoundError: The folder has a result, and its value is not visible on this host yet.
    """
    folder = layout.folder(task.id)
    result = read_result(folder, task.key)
    if result is None:
        return False
    try:
        content = read_private(value_file(folder))
        returned, value = pickle.loads(content)  # noqa: S301 - from this user
    except (FileNotFoundError, EOFError):
        if result.value is not None:
            raise FileNotFoundError(value_file(folder)) from None
        task.fail(failure(result.reason, task))  # the job could not load or send it
    except Exception as error:  # noqa: BLE001 - classes decide how they are read
        task.fail(error)  # the value is of a class that this process cannot import
    else:
        if returned:
            task.finish(value)
        else:
            value.add_note(f"in job {task.id} ({task.name}); its output: {task.output}")
            task.fail(value)
    return True


def failure(reason: str, task: Task) -> TaskFailed:
    """Return the error of a task that failed, with the end of its output."""
    end = tail_of(task.output)
    return TaskFailed(
        f"task {task.id} ({task.name}) failed: {reason}",
        f"Its output: {task.output}" + (f"\n{end}" if end else ""),
    )
