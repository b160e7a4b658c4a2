"""Call a function that another process has pickled; the other side is :mod:`spearmint.tasks`."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.layout import TrialFolder
from spearmint.trial.function_pickle import pickled

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""The Python version that pickles of code belong to."""


def function_file(folder: TrialFolder) -> Path:
    """Return the file with the function and its arguments."""
    return folder.path / "function.pickle"


def value_file(folder: TrialFolder) -> Path:
    """Return the file with the value that the function returned, or with its exception."""
    return folder.path / "value.pickle"


def write_private(path: Path, content: bytes) -> None:
    """Write a file by rename that only this user can read."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of a killed writer, or a link of another user
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
    part.replace(path)


def read_private(path: Path) -> bytes:
    """Return the content of a file that only this user can have written.

    Raises:
        PermissionError: Another user owns the file, or could write it.
        OSError: The file cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(f"{path} is not a private file of this user")
        return file.read()


def prepare_imports(origin: Mapping[str, Any]) -> None:
    """Import modules from where the process that pickled a function imported them.

    Args:
        origin: Its ``python`` version and import ``path``.

    Raises:
        RuntimeError: It had another version of Python.
    """
    if origin["python"] != PYTHON:
        raise RuntimeError(f"the function was sent by Python {origin['python']}, this is {PYTHON}")
    sys.path.extend(path for path in origin["path"] if path not in sys.path)


def call_function(spec: Mapping[str, Any], folder: TrialFolder) -> dict[str, Any]:
    """Call the function of a task and write its value or exception; the result is 0.

    Raises:
        RuntimeError: Another version of Python pickled the function.
        BaseException: Any exception of the function, or of reading it.
    """
    value_file(folder).unlink(missing_ok=True)
    prepare_imports(spec)
    try:
        content = read_private(function_file(folder))
        function, arguments, named = _loaded(content)
        write_private(value_file(folder), pickled((True, function(*arguments, **named))))
    except Exception as error:
        write_private(value_file(folder), _pickled_error(error))
        raise
    return {"value": 0.0}


def _loaded(content: bytes) -> Any:
    try:
        return pickle.loads(content)  # noqa: S301 - from this user
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error} on host {os.uname().nodename}: functions of modules are sent by name. "
            "Install the module there, or send it: cloudpickle.register_pickle_by_value(MODULE)",
            name=error.name,
        ) from None


def _pickled_error(error: Exception) -> bytes:
    """Return an exception as a pickle; empty if it cannot be pickled and read again."""
    try:
        content = pickled((False, error))
        pickle.loads(content)  # noqa: S301 - made here
    except Exception:  # noqa: BLE001 - classes decide how they are pickled
        return b""
    return content
