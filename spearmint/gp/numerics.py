"""The array type of the model, and a limit of BLAS to one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array: TypeAlias = NDArray[np.float64]


_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit numpy's and scipy's BLAS to one thread within the context.

    The limit applies to the whole process. If contexts overlap, the last exit restores the limit
    from before the first entry.
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    """Return the loaded BLAS libraries; searching for them takes 10 ms."""
    return ThreadpoolController()
