"""Choose the algorithms with the fastest whole step; their ranking alone is different."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.stopwatch import Stopwatch
from pycuda_nn.cuda.step.agreement import FINE, FloatArray, most_apart

if TYPE_CHECKING:
    from pycuda_nn.cuda.gemm.matmul import Gemms
    from pycuda_nn.cuda.step.step import TrainingStep

_GAIN = 0.995  # times the best time: a smaller difference is noise
_REPLAYS, _ROUNDS = 4, 3
_LIMIT_S = 4.0  # of a search; the remaining kinds keep the algorithm that is fastest alone
_HOT_STEP_S, _HOT_S = 2e-4, 0.3  # large products reach the power limit, which lowers the clock
_LONG_STEP_S = 0.01  # longer steps are timed one by one: eight take the time of eight choices

Run = Callable[[int, int], float]
Gradients = Callable[[int], Sequence[FloatArray]]
_LOG = logging.getLogger("pycuda_nn")


class Choice(Protocol):
    """A part of a step that has several algorithms."""

    def use(self, algorithm: bytes) -> None:
        """Use one of the algorithms of its kind."""


def refine(
    step: TrainingStep,
    gemms: Gemms,
    run: Run,
    what: str,
    *,
    source: str,
    most_steps: int,
    gradients: Gradients | None = None,
) -> None:
    """Set the algorithm of every product of ``step`` for which the step is fastest.

    A choice with built-in kernels whose gradients differ from those of cuBLASLt is not used.

    Args:
        step: The step; its graphs are recorded again after a change.
        gemms: The factory of its products.
        run: Called with (steps, replays): replays a graph of ``steps`` steps and returns seconds.
        what: Identifier of the step; the choice is stored in the cache on disk.
        source: Identifier of the code of its other kernels: a choice among others is another one.
        most_steps: Most steps in a graph.
        gradients: Called with a number of steps; returns the first moments of all parameters after
            these steps, which start with moments of zero. None: they are not compared.
    """
    kinds = sorted(step.products())
    name = cache.key(gemms.where, what, source, *kinds) + ".step"
    known = cache.read(name)
    if known is None:
        chosen = _search(step, gemms, run, kinds, most_steps)
        if gradients is not None:
            chosen = _agreeing(step, gemms, chosen, lambda: gradients(most_steps))
        known = cache.keep(name, bytes([chosen[kind] for kind in kinds]))
    _use(step, gemms, dict(zip(kinds, known, strict=True)))


def _search(
    step: TrainingStep, gemms: Gemms, run: Run, kinds: list[str], most_steps: int
) -> dict[str, int]:
    """Return the index of the best algorithm of each kind; search one kind after another."""
    run(1, 1)
    step_s = run(1, 1)
    steps = most_steps if step_s < _LONG_STEP_S else 1
    if _HOT_STEP_S < step_s < _LONG_STEP_S:
        _warm_up(run, steps)
    stopwatch = Stopwatch(runs=_REPLAYS, rounds=_ROUNDS, limit_s=_LIMIT_S)

    def seconds(places: dict[str, int]) -> float:
        _use(step, gemms, places)
        return stopwatch.seconds(lambda replays: run(steps, replays))

    chosen = dict.fromkeys(kinds, 0)
    best = math.inf
    for kind in kinds:
        others = range(1, len(gemms.algorithms(kind)))
        if others and (best == math.inf or steps == most_steps):  # the clock can have changed
            best = seconds(chosen)
        for place in others:
            tried = {**chosen, kind: place}
            took = seconds(tried)
            if took < _GAIN * best:
                best, chosen = took, tried
    return chosen


def _agreeing(
    step: TrainingStep,
    gemms: Gemms,
    chosen: dict[str, int],
    gradients: Callable[[], Sequence[FloatArray]],
) -> dict[str, int]:
    """Return ``chosen``, or algorithms of cuBLASLt alone if the gradients differ."""
    plain = {kind: gemms.plain(kind, place) for kind, place in chosen.items()}
    if plain == chosen:
        return chosen
    _use(step, gemms, chosen)
    new = gradients()
    _use(step, gemms, plain)
    apart = most_apart(gradients(), new)
    if apart <= FINE.relative:
        return chosen
    _LOG.warning(
        "gradients of built-in kernels and of cuBLASLt differ by %.0f %%: using cuBLASLt",
        100 * apart,
    )
    return plain


def _warm_up(run: Run, steps: int) -> None:
    """Run until the GPU has the clock of a long training."""
    spent_s = 0.0
    while spent_s < _HOT_S:
        spent_s += run(steps, _REPLAYS)


def _use(step: TrainingStep, gemms: Gemms, places: dict[str, int]) -> None:
    for kind, products in step.products().items():
        known = gemms.algorithms(kind)
        for product in products:
            product.use(known[min(places[kind], len(known) - 1)])
    step.forget()
