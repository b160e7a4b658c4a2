from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pycuda_nn.backends.numpy.session import NumpyBackend
from pycuda_nn.bench.scaling import own, torch_ddp
from pycuda_nn.bench.scaling.own import LEAST_STEPS, median_step, time_steps
from pycuda_nn.network import Network
from pycuda_nn.protocols import Session, Split, TrainingRecipe


class Clock:
    """A clock that only epochs move on."""

    def __init__(self, spans: list[float]) -> None:
        self.now, self.epochs, self._spans = 100.0, 0, spans

    def __call__(self) -> float:
        return self.now

    def epoch(self) -> None:
        self.now += self._spans[min(self.epochs, len(self._spans) - 1)]
        self.epochs += 1


def test_two_epochs_warm_up_and_the_median_of_the_others_counts() -> None:
    clock = Clock([5.0, 5.0, 0.4, 0.2, 0.3, 9.0])
    timing = median_step(clock.epoch, 100, 0.5, clock)
    assert timing == pytest.approx({"us": 3000.0, "fastest": 2000.0, "slowest": 4000.0})
    assert clock.epochs == 5


def test_short_epochs_are_timed_more_often_but_not_forever() -> None:
    clock = Clock([0.1])
    median_step(clock.epoch, 10, 1.05, clock)
    assert clock.epochs == 2 + 11
    clock = Clock([0.0])
    median_step(clock.epoch, 10, 1.0, clock)
    assert clock.epochs == 2 + 50


class Watched(NumpyBackend):
    """Trains on the CPU, and keeps what it was given."""

    batch = rows = 0
    closed = False

    def open(self, network: Network, recipe: TrainingRecipe, parts: Any, params: Any) -> Session:
        self.batch, self.rows = recipe.batch_size, len(parts["train"].x)
        session = super().open(network, recipe, parts, params)
        session.close = self._close  # type: ignore[method-assign]
        return session

    def _close(self) -> None:
        self.closed = True


def test_rows_fill_whole_minibatches_and_the_session_is_closed() -> None:
    backend = Watched()
    timing = time_steps(backend, (8, 16, 10), 32, row_bytes=0, seconds=0.0)
    assert (backend.batch, backend.rows) == (32, 32 * LEAST_STEPS)
    assert backend.closed
    assert 0 < timing["fastest"] <= timing["us"] <= timing["slowest"]
    time_steps(backend, (8, 16, 10), 32, row_bytes=4 * 8 * 32 * 20, seconds=0.0)
    assert backend.rows == 32 * 20


class Diverging(NumpyBackend):
    def open(self, network: Network, recipe: TrainingRecipe, parts: Any, params: Any) -> Session:
        return super().open(network, recipe, parts, np.full_like(params, np.nan))


def test_a_training_that_diverges_has_no_time() -> None:
    with pytest.raises(FloatingPointError):
        time_steps(Diverging(), (8, 16, 10), 32, row_bytes=0, seconds=0.0)


def test_one_gpu_needs_no_exchange_and_more_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(own.nn, "CudaOptions", lambda **options: seen.append(options))
    monkeypatch.setattr(own.nn, "CudaBackend", lambda options, timed: NumpyBackend())
    plan = {"precision": "bf16", "row_bytes": 0, "seconds": 0.0}
    case = {"sizes": [8, 16, 10], "batch": 32, "exchange": "nccl"}
    own._time_case({**case, "gpus": 1}, plan)
    own._time_case({**case, "gpus": 2}, plan)
    assert seen == [
        {"precision": "bf16"}, {"precision": "bf16", "gpus": 2, "exchange": "nccl"},
    ]  # fmt: skip


def rows(n: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    return own._rows(8, n)


def test_rows_repeat() -> None:
    x, y = rows(own._DISTINCT_ROWS + 5)
    assert x.shape == (own._DISTINCT_ROWS + 5, 8)
    np.testing.assert_array_equal(x[:5], x[-5:])
    np.testing.assert_array_equal(y[:5], y[-5:])
    assert set(y) == set(range(10))
    Split(x=x, y=y)


def test_the_worker_of_torch_imports_nothing_of_this_package() -> None:
    code = (
        "import runpy, sys; runpy.run_path(sys.argv[1]);"
        "sys.exit(bool({'pycuda_nn', 'numpy', 'torch'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code, torch_ddp.__file__], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        ({"graph": False, "hook": False, "cap": None}, "eager"),
        ({"graph": True, "hook": True, "cap": 4}, "graph, bf16 gradients, 4 MiB buckets"),
    ],
)
def test_names_of_the_ways_of_torch(variant: dict[str, Any], text: str) -> None:
    assert torch_ddp.name_of(variant) == text


def test_the_slowest_rank_of_a_round_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = iter([1e-3, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3])
    monkeypatch.setattr(torch_ddp, "_span", lambda world, step, steps: next(spans))
    world: Any = SimpleNamespace(gathered=lambda value: [value, 2 * value])
    timing = torch_ddp._timed(world, lambda: None, 0.1)
    assert timing == pytest.approx({"us": 6000.0, "fastest": 2000.0, "slowest": 10000.0})


def test_all_ranks_time_the_same_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def span(world: object, step: object, steps: int) -> float:
        counts.append(steps)
        return 1e-3 * (1 + (world is not slow))

    monkeypatch.setattr(torch_ddp, "_span", span)
    slow: Any = SimpleNamespace(gathered=lambda value: [1e-3, 2e-3])
    torch_ddp._timed(slow, lambda: None, 1.0)
    other: Any = SimpleNamespace(gathered=lambda value: [1e-3, 2e-3])
    torch_ddp._timed(other, lambda: None, 1.0)
    assert counts[:6] == counts[6:] == [8, *[100] * 5]


@pytest.mark.gpu(n=2)
def test_two_gpus_are_timed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pycuda_nn", "bench", "scaling", "--quick", "--gpus", "2",
         "--networks", "netflix-b1024", "--engine", "pycuda_nn"],
        env={**os.environ, "NCCL_NVLS_ENABLE": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Weak scaling" in done.stdout
