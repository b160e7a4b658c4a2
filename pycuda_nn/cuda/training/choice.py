"""Choose the fastest path of a training: time the possible paths once on each model of GPU.

A path without enough memory for its workspace is passed over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.step.agreement import FINE, FloatArray, Tolerance, most_apart
from pycuda_nn.cuda.tiny.kernel import source_of
from pycuda_nn.cuda.tiny.plan import TinyPlan, microseconds
from pycuda_nn.errors import OutOfDeviceMemory

if TYPE_CHECKING:
    from pycuda_nn.cuda.training.epoch import Epoch

_LOG = logging.getLogger("pycuda_nn")
_CLEARLY = 0.85  # of the time of a path that is not tuned: tuning gains less
_CLEARLY_US = 5.0  # of a step and layer: a captured step takes longer


class Paths:
    """The paths that cover a training, in order of preference if they are not timed."""

    def __init__(
        self,
        seconds: Callable[[Epoch], float],
        where: str,
        name: str,
        *,
        tune: bool,
        gradients: Callable[[Epoch], Sequence[FloatArray]] | None = None,
        tolerance: Tolerance = FINE,
    ) -> None:
        """Start without a path.

        Args:
            seconds: Returns the seconds of a step of an epoch.
            where, name: Identifiers of GPU and libraries, and of the training.
            tune: Whether to time the paths, and to store the fastest in the cache on disk.
            gradients: Returns the first moments of all parameters after a few steps of an epoch. A
                path whose moments differ from those of the path with ``plain`` is not used.
                None: they are not compared.
            tolerance: How far the moments can differ.
        """
        self._seconds, self._tune, self._gradients = seconds, tune, gradients
        self._tolerance = tolerance
        self._identity = [where, name]
        self._makers: dict[str, Callable[[], Epoch]] = {}
        self._reasons: dict[str, str] = {}
        self._plain: dict[str, Callable[[], Epoch]] = {}

    def add(
        self,
        path: str,
        make: Callable[[], Epoch],
        reason: str = "",
        *,
        source: str,
        plain: Callable[[], Epoch] | None = None,
    ) -> None:
        """Add a path.

        Args:
            path: Its name.
            make: Returns its epoch.
            reason: Why it is not a faster path.
            source: Identifier of the code of its kernels: other kernels are timed again.
            plain: Returns an epoch that is not tuned, which takes seconds. It is timed first, and
                tuned only if that can make it the fastest path.
        """
        self._makers[path], self._reasons[path] = make, reason
        self._identity.append(source)
        if plain is not None:
            self._plain[path] = plain

    def add_tiny(
        self,
        plan: TinyPlan,
        make: Callable[[], Epoch],
        *,
        rounds: int = 1,
        source: str = "",
        preferred: bool = False,
    ) -> None:
        """Add the tiny kernel; without timing, only if it is clearly faster by its model.

        Args:
            plan: Its plan.
            make: Returns its epoch.
            rounds: Times that the GPU is filled with the blocks of several networks.
            source: Code of the kernel if it is not that of one network.
            preferred: Whether it precedes the persistent kernel if they are not timed.
        """
        layers = len(plan.stack.sizes) - 1
        if not self._tune and rounds * microseconds(plan) > _CLEARLY_US * layers:
            return
        path, others = f"tiny kernel, {plan}", self._makers
        self._identity.append(source or source_of(plan))
        if self._tune or ("persistent kernel" in others and not preferred):
            self._makers = {**others, path: make}
        else:
            self._makers = {path: make, **others}
        self._reasons[path] = ""

    def fastest(self, what: str) -> Epoch:
        """Return the epoch of the fastest path and log its name; ``what`` names the training.

        Raises:
            OutOfDeviceMemory: There is not enough memory for any path.
        """
        if len(self._makers) > 1 and self._tune:
            chosen, epoch, why = self._timed()
        else:
            chosen, epoch, why = self._first(list(self._makers))
        reason = "; ".join(filter(None, [self._reasons[chosen], why]))
        _LOG.info("training path: %s (%s)%s", chosen, what, f": {reason}" if reason else "")
        return epoch

    def _first(self, paths: Sequence[str]) -> tuple[str, Epoch, str]:
        """Return the first path for which there is enough memory, and its epoch."""
        path, *others = paths
        try:
            return path, self._makers[path](), ""
        except OutOfDeviceMemory as error:
            if not others:
                raise
            chosen, epoch, _ = self._first(others)
            return chosen, epoch, f"no {path}: {error}"

    def _timed(self) -> tuple[str, Epoch, str]:
        """Return the fastest path, its epoch, and the times, from the cache if possible."""
        name = cache.key(*self._identity, *self._makers) + ".path"
        known = cache.read(name)
        if known is not None:
            return self._known(*_split(known))
        made, problem = self._all()
        if problem:
            path = next(iter(made))
            return path, self._makers[path]() if path in self._plain else made[path], problem
        seconds, final = {path: self._seconds(epoch) for path, epoch in made.items()}, set(made)
        for path in self._plain:
            others = [seconds[other] for other in made if other != path]
            if min(others) > _CLEARLY * seconds[path]:
                made[path] = self._makers[path]()
                seconds[path] = self._seconds(made[path])
            else:
                final.remove(path)
        ranked = self._agreeing(sorted(seconds, key=seconds.__getitem__), made)
        times = ", ".join(f"{path} {seconds[path] * 1e6:.1f}" for path in ranked)
        chosen, why = _split(cache.keep(name, f"{ranked[0]}\n{times} us a step".encode()))
        return chosen, made[chosen] if chosen in final else self._makers[chosen](), why

    def _agreeing(self, ranked: list[str], made: Mapping[str, Epoch]) -> list[str]:
        """Return the paths without those whose gradients are not those of the captured step."""
        gradients, right = self._gradients, next(filter(made.__contains__, self._plain), "")
        if gradients is None or not right:
            return ranked
        while ranked[0] != right:
            pair = gradients(made[right]), gradients(made[ranked[0]])
            apart = most_apart(*pair, self._tolerance.small)
            if apart <= self._tolerance.relative:
                break
            _LOG.warning(
                "gradients of the %s and of the %s differ by %.0f %%: not using the %s",
                ranked[0], right, 100 * apart, ranked[0],
            )  # fmt: skip
            ranked = ranked[1:]
        return ranked

    def _all(self) -> tuple[dict[str, Epoch], str]:
        """Return the epochs of all paths for which there is enough memory, and why not of all."""
        made: dict[str, Epoch] = {}
        problem = ""
        for path, make in self._makers.items():
            try:
                made[path] = self._plain.get(path, make)()
            except OutOfDeviceMemory as error:
                if not made and path == list(self._makers)[-1]:
                    raise
                problem = f"no {path}: {error}"
        return made, problem

    def _known(self, chosen: str, why: str) -> tuple[str, Epoch, str]:
        others = [path for path in self._makers if path != chosen]
        found, epoch, problem = self._first([chosen, *others])
        return found, epoch, problem or why


def _split(held: bytes) -> tuple[str, str]:
    """Return the path and the times of an entry of the cache."""
    path, _, times = held.decode().partition("\n")
    return path, times
