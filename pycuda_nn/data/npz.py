"""Read ``.npz`` and ``.npy`` files; a damaged file raises OSError or ValueError."""

from __future__ import annotations

import contextlib
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# RuntimeError: flags and methods that only a damaged archive has. TokenError: a truncated header.
_DAMAGED = (EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, tokenize.TokenError)


class PythonObjects(ValueError):
    """An array has Python objects: only pickle reads them, and that can run code of the file."""


def read_npz(path: Path) -> dict[str, Array]:
    """Return all arrays of an archive.

    Raises:
        OSError, ValueError: The file cannot be read, or is damaged.
    """
    with _plain_errors(), path.open("rb") as raw:
        file = np.load(raw, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("a single array, not an archive of named arrays")
        with file:
            return {key: _member(file, key) for key in file.files}


def map_npy(path: Path) -> Array:
    """Return the array of a file as a memory map.

    Raises:
        OSError, ValueError: The file cannot be read, or is damaged.
    """
    with _plain_errors():
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("an archive of arrays, not a single array")
    return array


def _member(file: Any, key: str) -> Array:
    with _plain_errors(f"array {key}"):
        array: Array = file[key]
    return array


@contextlib.contextmanager
def _plain_errors(what: str = "the array") -> Iterator[None]:
    """Raise ValueError for any damage, without the advice of numpy to unpickle the file."""
    try:
        yield
    except _DAMAGED as error:
        raise ValueError(str(error)) from error
    except PythonObjects:
        raise
    except ValueError as error:
        if "Object arrays" in str(error) or "Python objects" in str(error):
            raise PythonObjects(f"{what} has Python objects, not numbers or text") from error
        if "pickle" in str(error):
            raise ValueError("not a file that numpy.save or numpy.savez wrote") from error
        raise
