"""The algorithms that make a whole step fastest; alone and beside others they rank differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.stopwatch import Stopwatch

if TYPE_CHECKING:
    from pycuda_nn.cuda.gemm.matmul import Gemms
    from pycuda_nn.cuda.step.step import TrainingStep

_GAIN = 0.995  # below this share of the best time an algorithm is better, not only luckier
_REPLAYS, _ROUNDS = 4, 3
_LIMIT_S = 4.0  # of a search; kinds that come later keep what is fastest alone
_LONG_STEP_S = 0.01  # such steps are timed one by one: eight would take the time of eight choices

Run = Callable[[int, int], float]


def refine(step: TrainingStep, gemms: Gemms, run: Run, what: str, *, most_steps: int) -> None:
    """Give every product of ``step`` the algorithm with which the step is fastest.

    Args:
        step: Changed; its graphs are recorded again.
        gemms: Where its products came from.
        run: Replays a graph of so many steps so many times, and returns seconds.
        what: Tells one step from another; the choice is kept in the cache on disk.
        most_steps: Of a graph.
    """
    kinds = sorted(step.products())
    name = cache.key(gemms.where, what, *kinds) + ".step"
    known = cache.read(name)
    if known is None:
        known = cache.keep(name, _search(step, gemms, run, kinds, most_steps))
    _use(step, gemms, dict(zip(kinds, known, strict=True)))


def _search(step: TrainingStep, gemms: Gemms, run: Run, kinds: list[str], most_steps: int) -> bytes:
    """Return the place of the best algorithm of each kind; one kind after the other."""
    run(1, 1)
    steps = most_steps if run(1, 1) < _LONG_STEP_S else 1
    stopwatch = Stopwatch(runs=_REPLAYS, rounds=_ROUNDS, limit_s=_LIMIT_S)

    def seconds(places: dict[str, int]) -> float:
        _use(step, gemms, places)
        return stopwatch.seconds(lambda replays: run(steps, replays))

    chosen = dict.fromkeys(kinds, 0)
    best = seconds(chosen)
    for kind in kinds:
        for place in range(1, len(gemms.algorithms(kind))):
            tried = {**chosen, kind: place}
            took = seconds(tried)
            if took < _GAIN * best:
                best, chosen = took, tried
    return bytes([chosen[kind] for kind in kinds])


def _use(step: TrainingStep, gemms: Gemms, places: dict[str, int]) -> None:
    for kind, products in step.products().items():
        known = gemms.algorithms(kind)
        for product in products:
            product.use(known[min(places[kind], len(known) - 1)])
    step.forget()
