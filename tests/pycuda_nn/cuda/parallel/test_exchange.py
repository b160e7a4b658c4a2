"""The kernels of the exchange on emulated GPUs, in the schedule of the real step, against numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pycuda_nn.backends.testing import ADAM, NESTEROV, SGD
from tests.pycuda_nn.cuda.parallel.fakes.drivers import faked_drivers
from tests.pycuda_nn.cuda.parallel.fakes.gpu import Operation

NO_ANSWER, STOPPED = 1, 2  # Trouble of exchange.cuh
CASES: dict[str, tuple[int, dict[str, Any]]] = {  # threads, and a Case
    "2 ranks": (64, {"size": 2, "optimizer": SGD}),
    "large layers": (64, {"size": 2, "optimizer": SGD, "large": 1}),
    "one layer": (64, {"size": 2, "optimizer": SGD, "widths": (16, 40)}),
    "nccl": (64, {"size": 2, "optimizer": SGD, "nccl": True}),
    "bf16": (32, {"size": 3, "optimizer": NESTEROV, "precision": "bf16"}),
    "fp16, fused head": (
        32,
        {"size": 4, "optimizer": ADAM, "precision": "fp16", "activation": "relu",
         "loss": "softmax", "multiprocessors": 8, "rows": 26},
    ),
    "ranks without rows": (
        64,
        {"size": 8, "optimizer": ADAM, "precision": "bf16", "exact": True, "rows": 5, "l2": 0.0},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Return a function that makes the training of a case, its kernels and its twin."""
    built: dict[tuple[str, ...], Any] = {}
    with faked_drivers():
        from pycuda_nn.cuda.parallel import exchange, nccl, room
        from tests.pycuda_nn.cuda.parallel.fakes.emulation import Emulation
        from tests.pycuda_nn.cuda.parallel.fakes.step import Case, view
        from tests.pycuda_nn.cuda.parallel.fakes.training import FakeTraining
        from tests.pycuda_nn.cuda.parallel.fakes.twin import Twin

        def make(name: str, **more: Any) -> Any:
            threads, given = CASES[name]
            exchange.THREADS = nccl.THREADS = room.THREADS = threads  # type: ignore[misc]
            training = FakeTraining(Case(**given), **more)
            weights, peers = training.ranks[0].weights, training.case.peers
            key = tuple(exchange.exchange_options(training.plan, weights, peers))
            if key not in built:
                built[key] = Emulation(key, exchange.FILES, tmp_path_factory.mktemp("kernels"))
            return SimpleNamespace(
                training=training, kernels=built[key], view=view, twin=Twin(training, threads)
            )

        yield make


def _run(made: Any, **more: Any) -> None:
    """Run all operations and compare everything with the twin, bit by bit."""
    training, twin = made.training, made.twin
    operations = training.operations
    ended = made.kernels.run(
        operations, training.host, ranks=training.case.size, words=training.words, **more
    )
    assert ended == len(operations), "deadlock"
    for step in range(training.steps):
        twin.step(step)
    wanted = {"params": twin.params, "velocity": twin.first, "m": twin.first, "v": twin.second}
    first = training.ranks[0].weights.copy_bits()
    for rank in training.ranks:
        assert rank.trouble() == 0
        for name, pieces in rank.weights.parts().items():
            for start, values in pieces:
                np.testing.assert_array_equal(values, wanted[name][start : start + len(values)])
        np.testing.assert_array_equal(rank.weights.copy_bits(), first)
        losses = made.view(rank.losses, training.steps, np.float32)
        np.testing.assert_array_equal(losses, twin.losses[rank.rank])


@pytest.mark.parametrize("name", CASES)
def test_all_ranks_compute_the_bits_of_the_twin(emulated: Callable[..., Any], name: str) -> None:
    for seed in range(3):
        _run(emulated(name), seed=seed)


def test_shards_cover_all_weights_once(emulated: Callable[..., Any]) -> None:
    training = emulated("bf16").training
    counts = np.zeros(training.plan.layout.n_params, int)
    for rank in training.ranks:
        for piece in rank.shards.weights:
            counts[piece.start : piece.stop] += 1
    assert (counts[: training.plan.layout.n_weights] == 1).all()
    assert (counts[training.plan.layout.n_weights :] == 0).all()


def _is_caught(emulated: Callable[..., Any], name: str, **more: Any) -> bool:
    for seed in range(30):
        made = emulated(name)
        if "places" in more:
            for rank in made.training.ranks:
                rank.weights.places = more["places"]
        try:
            _run(made, seed=seed, without=more.get("without", ""))
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize(
    "without",
    [
        "wait for gradients",
        "all threads wait for gradients",
        "wait for weights",
        "order the stores of other blocks",
    ],
)
def test_each_statement_of_the_protocol_is_needed(
    emulated: Callable[..., Any], without: str
) -> None:
    assert _is_caught(emulated, "bf16", without=without)


def _ended(made: Any, **more: Any) -> int:
    """Run the kernels alone; after trouble the numbers mean nothing."""
    training = made.training
    ended: int = made.kernels.run(
        training.operations, lambda *_: None, ranks=training.case.size, words=training.words, **more
    )
    return ended


@pytest.mark.parametrize("turn", [0, 300, 3000])
def test_a_word_of_the_host_ends_all_waits(emulated: Callable[..., Any], turn: int) -> None:
    for seed in range(3):
        made = emulated("bf16")
        absent = made.training.operations[len(made.training.operations) // 2]
        missing = _missing(made, absent)
        ended = _ended(made, seed=seed, stop_at=turn, held=lambda one: one in missing)  # noqa: B023
        assert ended == len(made.training.operations) - len(missing)
        troubles = {rank.trouble() for rank in made.training.ranks if rank.rank != absent.rank}
        assert troubles == {STOPPED}


def test_ranks_give_up_a_rank_that_does_not_answer(emulated: Callable[..., Any]) -> None:
    for seed in range(4):
        made = emulated("bf16", limit=20)
        operations = made.training.operations
        absent = operations[len(operations) * (seed + 1) // 6]
        missing = _missing(made, absent)
        assert _ended(made, seed=seed, held=lambda one: one in missing) == len(operations) - len(  # noqa: B023
            missing
        )
        troubles = {rank.trouble() for rank in made.training.ranks if rank.rank != absent.rank}
        assert troubles == {NO_ANSWER}


def _missing(made: Any, absent: Any) -> set[Any]:
    """Return ``absent`` and all later operations of its rank."""
    of_rank = [one for one in made.training.operations if one.rank == absent.rank]
    return set(of_rank[of_rank.index(absent) :])


@pytest.mark.parametrize("name", ["2 ranks", "bf16"])
def test_rows_are_gathered_from_all_ranks(emulated: Callable[..., Any], name: str) -> None:
    from pycuda_nn.cuda.parallel.shards import dealt_rows, share_of
    from pycuda_nn.cuda.parallel.structs import Dealt, addresses

    made, size = emulated(name), CASES[name][1]["size"]
    kind = np.uint32 if name == "2 ranks" else np.uint16
    n, width, batch, first, rows, step, j = 23, 16, 6, 2, 3, 1, 1
    x = np.arange(n * width, dtype=kind).reshape(n, width)
    y = np.arange(2 * n, dtype=np.uint32).reshape(n, 2)
    order = np.random.default_rng(0).permutation(n).astype(np.int32)
    clock = np.array([step, 0], np.int32)
    held = [
        x[dealt_rows(q, size, n).start : dealt_rows(q, size, n).stop].copy() for q in range(size)
    ]
    to, targets = np.zeros((rows, width), kind), np.zeros((rows, 2), np.uint32)
    dealt = Dealt(
        x=addresses([part.ctypes.data for part in held]), y=y.ctypes.data,
        order=order.ctypes.data + 4 * first, clock=clock.ctypes.data, to=to.ctypes.data,
        targets=targets.ctypes.data, share=share_of(size, n), j=j, batch=batch, rows=rows,
        packs=width * kind().itemsize // 16, words=2,
    )  # fmt: skip
    operation = Operation(
        name="gather_dealt", rank=0, threads=32, after=frozenset(),
        arguments=ctypes.string_at(ctypes.addressof(dealt), ctypes.sizeof(dealt)),
    )  # fmt: skip
    assert made.kernels.run([operation], print, ranks=1, words=np.zeros(2, np.uint32)) == 1
    wanted = order[(step + j) * batch + first :][:rows]
    np.testing.assert_array_equal(to, x[wanted])
    np.testing.assert_array_equal(targets, y[wanted])
