"""Limit the threads of numpy's BLAS.

Two threads gain little on a small matrix product. If other processes use the same cores, the
threads wait for each other: 64-row steps of the digits network then took 10 to 100 times as long as
with one thread. Several trials of a search on one machine are such a case.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which every loaded BLAS uses one thread."""
    limiter: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limiter


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
