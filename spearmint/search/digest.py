"""A digest of the code of a function, which is the same in each process."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def digest_of(function: Callable[..., Any]) -> str:
    """Return a digest of the source of a function and of those that it calls in its module.

    A function without source, for example of the prompt, has a digest of its code. Values, for
    example of global variables, do not count. A pickle is unsuitable: the order of its sets differs
    between processes.
    """
    parts = "\0".join(_parts(function, set()))
    return hashlib.sha256(parts.encode(errors="backslashreplace")).hexdigest()


def _parts(function: Any, seen: set[int]) -> Iterator[str]:
    """Yield the code of ``function``, then that of the functions that it calls."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)  # of a method
    if id(function) in seen:
        return
    seen.add(id(function))
    code = getattr(function, "__code__", None)
    try:
        is_code = code is not None or isinstance(function, type)
        yield inspect.getsource(function if is_code else type(function))
    except (OSError, TypeError):  # TypeError: of the interpreter
        code = code or getattr(vars(type(function)).get("__call__"), "__code__", None)
        yield from _code_parts(code) if code is not None else [str(type(function))]
    if not isinstance(function, FunctionType):
        return
    names = sorted(_names_in(function.__code__))
    used = [function.__globals__.get(name) for name in names]
    for cell in function.__closure__ or ():
        used.append(_content_of(cell))
    for each in used:
        if isinstance(each, FunctionType) and each.__module__ == function.__module__:
            yield from _parts(each, seen)


def _content_of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in ``code`` and in its functions."""
    nested = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names_in, nested))


def _code_parts(code: CodeType) -> Iterator[str]:
    """Yield the instructions, the names and the constants of ``code``."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            is_set = isinstance(constant, frozenset)
            yield repr(sorted(map(repr, constant)) if is_set else constant)
