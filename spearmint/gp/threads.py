"""One BLAS thread at a time: the matrices here are too small for more.

On 50 observations two threads take 2.5 times as long as one, and more on a busy machine.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit numpy's and scipy's BLAS to one thread inside, if threadpoolctl is installed.

    The limit holds for the whole process, so the last one to leave restores what the first one
    found.
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            controller = _controller()
            _limit = controller.limit(limits=1, user_api="blas") if controller else None
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _limit is not None:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    """Return threadpoolctl's view of the libraries loaded now, or None without threadpoolctl."""
    try:
        return importlib.import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
