"""Functions that plugins for the original import from here."""

from __future__ import annotations

import functools
import secrets
import string
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from starcluster.logger import log

T = TypeVar("T")


def print_timing(msg: str | Callable[..., Any] = "", prefix: str = "") -> Any:
    """Decorate a function to log how long each call takes; the title is optional."""

    def decorate(function: Callable[..., Any], title: str = "") -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.monotonic()
            result = function(*arguments, **named)
            log.info(
                "%s%s took %.1f s", prefix, title or function.__name__, time.monotonic() - started
            )
            return result

        return timed

    return decorate(msg) if callable(msg) else functools.partial(decorate, title=msg)


def generate_passwd(length: int) -> str:
    """Return a random password of letters and digits."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))


def chunk_list(ls: Iterable[T], items: int = 8) -> Iterator[list[T]]:
    """Yield lists of at most ``items`` elements, in order."""
    rest = iter(ls)
    while chunk := list(islice(rest, items)):
        yield chunk
