"""Functions that plugins for the original import from here."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from starcluster.logger import log


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
