"""Pickle functions of a main script or notebook by value, with the names of their files."""

from __future__ import annotations

from io import BytesIO
from typing import Any, ClassVar

_NO_FILE = "<dynamic-code>"  # cloudpickle 3.1.3 and later write this for each file


def pickled(value: object) -> bytes:
    """Return a pickle of ``value``, which can contain functions.

    Tracebacks of the functions name the file that defines them, with every release of cloudpickle.

    Raises:
        Exception: An object cannot be pickled; the class depends on the object.
    """
    file = BytesIO()
    _pickler(file).dump(value)
    return file.getvalue()


def _pickler(file: BytesIO) -> Any:
    from collections import ChainMap
    from types import CodeType

    import cloudpickle

    by_type = cloudpickle.CloudPickler.dispatch_table

    def reduce_code(code: CodeType) -> tuple[Any, tuple[Any, ...]]:
        make, arguments = by_type[CodeType](code)
        return make, tuple(code.co_filename if each == _NO_FILE else each for each in arguments)

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap({CodeType: reduce_code}, by_type)

    return Pickler(file, protocol=5)
