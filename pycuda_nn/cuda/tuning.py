"""The algorithms that make a whole step fastest; alone and beside others they rank differently."""

from __future__ import annotations

import time
from collections.abc import Callable

import pycuda.driver as cuda

from pycuda_nn.cuda import cache
from pycuda_nn.cuda.gemm import Gemms
from pycuda_nn.cuda.step import Step

_GAIN = 0.995  # below this share of the best time an algorithm is better, not only luckier
_REPLAYS, _ROUNDS = 4, 3


def refine(step: Step, gemms: Gemms, run: Callable[[], None], what: str) -> None:
    """Give every product of ``step`` the algorithm with which the step is fastest.

    Args:
        step: Changed; its graphs are recorded again.
        gemms: Where its products came from.
        run: Puts some steps on a stream.
        what: Tells one step from another; the choice is kept in the cache on disk.
    """
    kinds = sorted(step.products())
    name = cache.key(gemms.where, what, *kinds) + ".step"
    known = cache.read(name)
    if known is None or len(known) != len(kinds):
        known = _search(step, gemms, run, kinds)
        cache.keep(name, known)
    _use(step, gemms, dict(zip(kinds, known, strict=True)))


def _search(step: Step, gemms: Gemms, run: Callable[[], None], kinds: list[str]) -> bytes:
    """Return the place of the best algorithm of each kind; one kind after the other."""
    chosen = dict.fromkeys(kinds, 0)
    best = _timed(step, gemms, run, chosen)
    for kind in kinds:
        for place in range(1, len(gemms.algorithms(kind))):
            tried = {**chosen, kind: place}
            took = _timed(step, gemms, run, tried)
            if took < _GAIN * best:
                best, chosen = took, tried
    return bytes([chosen[kind] for kind in kinds])


def _use(step: Step, gemms: Gemms, places: dict[str, int]) -> None:
    for kind, products in step.products().items():
        known = gemms.algorithms(kind)
        for product in products:
            product.use(known[min(places[kind], len(known) - 1)])
    step.forget()


def _timed(step: Step, gemms: Gemms, run: Callable[[], None], places: dict[str, int]) -> float:
    """Return seconds of some steps, the least of a few rounds."""
    _use(step, gemms, places)
    run()
    cuda.Context.synchronize()
    rounds = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        for _ in range(_REPLAYS):
            run()
        cuda.Context.synchronize()
        rounds.append(time.perf_counter() - began)
    return min(rounds)
