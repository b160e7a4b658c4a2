"""How many threads numpy's BLAS uses for a while.

Two threads gain little on a small matrix product, and where other processes want the same cores
they wait for each other: 64-row steps of the digits network then took 10 to 100 times as long as
with one thread. Several trials of a search on one machine are just that case.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which every BLAS that is loaded uses one thread."""
    limiter: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limiter


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
