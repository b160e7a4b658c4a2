"""Read ``.npz`` and ``.npy`` files; a damaged file raises OSError or ValueError."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# RuntimeError: flags and methods that only a damaged archive has. TokenError: a truncated header.
_DAMAGED = (EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, tokenize.TokenError)


def read_npz(path: Path) -> dict[str, Array]:
    """Return all arrays of an archive.

    Raises:
        OSError, ValueError: The file cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise ValueError("a single array, not an archive of named arrays")
            with file:
                return {key: file[key] for key in file.files}
    except _DAMAGED as error:
        raise ValueError(str(error)) from error


def map_npy(path: Path) -> Array:
    """Return the array of a file as a memory map.

    Raises:
        OSError, ValueError: The file cannot be read, or is damaged.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGED as error:
        raise ValueError(str(error)) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("an archive of arrays, not a single array")
    return array
