"""The choice of algorithms: correct for short steps, limited in time for long steps."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pycuda_nn.cuda.runtime.stopwatch import Stopwatch
from pycuda_nn.cuda.step.tune import refine


class FakeProduct:
    """Stores its last algorithm."""

    def __init__(self) -> None:
        self.algorithm = b""

    def use(self, algorithm: bytes) -> None:
        self.algorithm = algorithm


class FakeStep:
    """A step whose time is the sum of the times of its products, with a clock."""

    def __init__(self, seconds: dict[str, list[float]]) -> None:
        self._seconds = seconds
        self.slowdown, self.hot_after_s = 1.0, 0.0
        self._made: dict[str, list[FakeProduct]] = {kind: [FakeProduct()] for kind in seconds}
        self._recorded: set[int] = set()
        self.now_s = 0.0
        self.longest_graph = 0

    def products(self) -> dict[str, list[FakeProduct]]:
        return self._made

    def forget(self) -> None:
        self._recorded.clear()

    def seconds(self) -> float:
        pairs = ((kind, p.algorithm) for kind, made in self._made.items() for p in made)
        return sum(self._seconds[kind][int(a or b"0")] for kind, a in pairs)

    def run(self, steps: int, replays: int) -> float:
        took = steps * replays * self.seconds()
        if steps not in self._recorded:
            self._recorded.add(steps)
            took += 0.001  # the first replay records
        self.longest_graph = max(self.longest_graph, steps)
        if self.now_s > self.hot_after_s:
            took *= self.slowdown
        self.now_s += took
        return took

    def chosen(self) -> list[int]:
        return [int(made[0].algorithm) for _, made in sorted(self._made.items())]


class FakeGemms:
    """Has one algorithm for each time of a kind."""

    where = "a GPU"

    def __init__(self, seconds: dict[str, list[float]]) -> None:
        self._known = {kind: [b"%d" % k for k in range(len(t))] for kind, t in seconds.items()}

    def algorithms(self, kind: str) -> list[bytes]:
        return self._known[kind]

    def plain(self, kind: str, place: int) -> int:
        """Of the three algorithms, all after the first are built-in kernels."""
        return 0


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYCUDA_NN_CACHE", str(tmp_path))


def tuned(seconds: dict[str, list[float]]) -> FakeStep:
    step = FakeStep(seconds)
    refine(step, FakeGemms(seconds), step.run, "a step", source="", most_steps=8)  # type: ignore[arg-type]
    return step


def network(scale_s: float) -> dict[str, list[float]]:
    """Return nine products with three algorithms; in turn the second, third and first is best."""
    orders = ([1.0, 0.7, 1.2], [1.0, 1.1, 0.6], [1.0, 1.3, 1.02])
    return {f"kind {k}": [scale_s * t for t in orders[k % 3]] for k in range(9)}


@pytest.mark.parametrize("scale_s", [5e-6, 1e-4, 6e-4, 1e-2], ids=["45us", "1ms", "5ms", "90ms"])
def test_each_product_gets_its_best(scale_s: float) -> None:
    assert tuned(network(scale_s)).chosen() == [1, 2, 0] * 3


@pytest.mark.parametrize("hot_after_s", [0.0, 0.1, 0.4])
def test_a_clock_that_falls_hides_no_faster_algorithm(hot_after_s: float) -> None:
    seconds = {"kind 0": [3e-4, 3e-4], "kind 1": [3e-4, 2.9e-4], "kind 2": [3e-4, 2.9e-4]}
    step = FakeStep(seconds)
    step.slowdown, step.hot_after_s = 1.05, hot_after_s
    refine(step, FakeGemms(seconds), step.run, "a step", source="", most_steps=8)  # type: ignore[arg-type]
    assert step.chosen()[1:] == [1, 1]


def test_processes_that_tune_at_once_use_what_the_first_kept() -> None:
    seconds = network(5e-6)
    turned = {kind: times[::-1] for kind, times in seconds.items()}
    step, others = FakeStep(seconds), []

    def run(steps: int, replays: int) -> float:
        if not others:  # another process finishes first
            others.append(tuned(turned))
        return step.run(steps, replays)

    refine(step, FakeGemms(seconds), run, "a step", source="", most_steps=8)  # type: ignore[arg-type]
    assert step.chosen() == others[0].chosen() != [1, 2, 0] * 3


def test_short_steps_are_replayed_as_ever() -> None:
    step = FakeStep(network(5e-6))
    refine(step, FakeGemms(network(5e-6)), step.run, "it", source="", most_steps=8)  # type: ignore[arg-type]
    tries, replays = 19, 3 * 4
    assert step.now_s > tries * replays * 8 * 9 * 0.7 * 5e-6
    assert step.longest_graph == 8


@pytest.mark.parametrize("scale_s", [6e-4, 6e-3, 0.1, 2.0], ids=["5ms", "50ms", "1s", "18s"])
def test_long_steps_are_tuned_in_a_few_seconds(scale_s: float) -> None:
    step = tuned(network(scale_s))
    once = 9 * scale_s
    assert step.now_s < 4.0 + 8 * max(once, 0.1)  # the limit, and the last run


def test_a_long_run_clearly_slower_is_left_at_once() -> None:
    runs: list[int] = []

    def timed(count: int, seconds: float) -> float:
        runs.append(count)
        return count * seconds

    stopwatch = Stopwatch(runs=4, rounds=3, limit_s=10.0)
    assert stopwatch.seconds(lambda count: timed(count, 0.05)) == pytest.approx(0.05)
    runs.clear()
    assert stopwatch.seconds(lambda count: timed(count, 0.06)) == pytest.approx(0.06)
    assert sum(runs) == 2  # the first run is a warm-up


def test_after_the_limit_nothing_is_run() -> None:
    stopwatch = Stopwatch(runs=4, rounds=3, limit_s=0.1)
    stopwatch.seconds(lambda count: count * 0.06)
    assert stopwatch.seconds(lambda count: pytest.fail("was run")) == float("inf")


def test_a_choice_next_to_other_kernels_is_made_again() -> None:
    network = {"kind": [2e-5, 1e-5]}
    for source, times, place in (
        ("a kernel", [2e-5, 1e-5], 1),
        ("a kernel", [1e-5, 2e-5], 1),  # from the cache
        ("another kernel", [1e-5, 2e-5], 0),
    ):
        network["kind"] = times
        step = FakeStep(network)
        refine(
            step,
            FakeGemms(network),
            step.run,
            "a step",
            source=source,
            most_steps=8,  # type: ignore[arg-type]
        )
        assert step.chosen() == [place]


@pytest.mark.parametrize(
    ("factor", "agrees"),
    [(1.0, True), (1.02, True), (1.2, False), (0.0, False), (np.nan, False)],
)
def test_built_in_kernels_whose_gradients_differ_are_not_used(
    caplog: pytest.LogCaptureFixture, factor: float, agrees: bool
) -> None:
    seconds = network(5e-6)
    step = FakeStep(seconds)
    asked: list[list[int]] = []

    def gradients(steps: int) -> list[npt.NDArray[np.float32]]:
        assert steps == 8
        asked.append(step.chosen())
        bias = np.float32([factor if any(step.chosen()) else 1.0])
        return [np.ones((2, 3), np.float32), bias]  # only a small part differs

    with caplog.at_level(logging.WARNING, "pycuda_nn"):
        for _ in range(2):  # the second time from the cache
            refine(
                step,
                FakeGemms(seconds),  # type: ignore[arg-type]
                step.run,
                "a step",
                source="",
                most_steps=8,
                gradients=gradients,
            )
            assert step.chosen() == ([1, 2, 0] if agrees else [0, 0, 0]) * 3
    assert asked == [[1, 2, 0] * 3, [0] * 9]
    assert len(caplog.messages) == (not agrees)


def test_gradients_that_are_not_finite_without_built_in_kernels_are_not_compared() -> None:
    seconds = network(5e-6)
    step = FakeStep(seconds)
    refine(
        step,
        FakeGemms(seconds),  # type: ignore[arg-type]
        step.run,
        "a step",
        source="",
        most_steps=8,
        gradients=lambda steps: [np.full(3, np.inf, np.float32), np.zeros(2, np.float32)],
    )
    assert step.chosen() == [1, 2, 0] * 3
