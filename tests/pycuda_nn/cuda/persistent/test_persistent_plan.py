"""Test without a GPU what the persistent kernel supports and how its work is distributed."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace
from typing import Any

import pytest

from pycuda_nn.cuda.persistent.plan import cycles, quickest
from pycuda_nn.cuda.persistent.recognise import recognise
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.cuda.stack import recognise as recognise_stack
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper
from tests.pycuda_nn.cuda.persistent.persistent_cases import H200, Case, short

MNIST = Case(sizes=(784, 512, 512, 10), batch=128)
SHAPES = (
    MNIST,
    Case(sizes=(33, 50, 7), batch=48),
    Case(sizes=(64, 128, 10), batch=64),
    Case(sizes=(784, 640, 640, 10), batch=128),
    Case(sizes=(784, 512, 512, 10), batch=512),
    Case(sizes=(20, 40, 50, 30, 40, 20), batch=400),
    Case(sizes=(100, 200, 96, 64), batch=256),
    Case(sizes=(513, 777, 333, 7), batch=250, optimizer="adam", dropout=0.2),
    Case(sizes=(50, 70, 33), batch=1, loss="squared"),
    Case(sizes=(128, 256, 1), batch=999, loss="logistic"),
    Case(sizes=(64, 128, 10), batch=272),
    Case(sizes=(784, 512, 512, 10), batch=100, precision="float32"),
    Case(sizes=(513, 777, 333, 7), batch=250, precision="float32", activation="gelu"),
    Case(sizes=(128, 256, 1), batch=999, precision="tf32", loss="logistic", dropout=0.2),
)


@pytest.mark.parametrize("case", SHAPES, ids=short)
@pytest.mark.parametrize("multiprocessors", [132, 108, 40, 7])
def test_every_weight_has_one_place_and_every_block_is_resident(case, multiprocessors) -> None:
    shared_bytes = H200["shared_bytes"]
    chosen = quickest(case.stack, case.variant, case.batch, multiprocessors, shared_bytes)
    if chosen is None:
        assert multiprocessors < 108
        return
    assert chosen.blocks <= multiprocessors
    assert chosen.batch == case.batch <= chosen.padded == chosen.rows * chosen.row_groups
    assert chosen.padded % chosen.chunk == 0
    assert chosen.chunk >= min(chosen.padded, 48 if chosen.variant.item_bytes == 2 else 32)
    assert chosen.row_groups <= 32
    assert chosen.shared_bytes <= H200["shared_bytes"]
    pairs = zip(chosen.sizes[:-1], chosen.sizes[1:], strict=True)
    for tiles, (ins, outs) in zip(chosen.tiles, pairs, strict=True):
        down, across = -(-outs // tiles.outs), -(-ins // tiles.ins)
        assert tiles.count == down * across <= chosen.blocks
        assert tiles.outs in (16, 32, 64, 128)
        assert tiles.ins % 8 == 0
        assert 0 <= tiles.first_block < chosen.blocks
        assert tiles.fragments * 8 * (128 // tiles.outs) >= tiles.ins


def test_the_partitions_that_were_measured_are_in_their_order() -> None:
    """Microseconds of the first case on an H200: 8 x 16: 13.0, 4 x 32: 14.4, 4 x 16: 22."""
    groups = ((8, 16), (4, 32), (4, 16))
    models = [cycles(MNIST.plan()), *(cycles(MNIST.divided(*both)) for both in groups)]
    assert models[0] == models[1] < models[2] < models[3]
    for case, groups in (
        (Case(sizes=(784, 256, 10), batch=128), (8, 16)),
        (Case(sizes=(784, 640, 640, 10), batch=128), (8, 16)),
        (Case(sizes=(784, 512, 512, 10), batch=256), (8, 16)),
        (Case(sizes=(784, 512, 512, 10), batch=512), (16, 8)),
    ):
        assert (case.plan().row_groups, case.plan().column_groups) == groups


def test_in_float32_the_update_can_need_more_blocks_than_strips() -> None:
    """Microseconds on an H100: 4 x 33: 22.8, 4 x 19: 27.6."""
    sizes = (784, 300, 300, 300, 10)
    floats = Case(sizes=sizes, batch=64, precision="float32", optimizer="adam", dropout=0.5)
    short_numbers = dataclasses.replace(floats, precision="bf16")
    assert [floats.plan().row_groups, floats.plan().column_groups] == [4, 33]
    assert [short_numbers.plan().row_groups, short_numbers.plan().column_groups] == [4, 19]


def facts(**changes: Any) -> Any:
    return SimpleNamespace(compute_capability=(9, 0), **(H200 | changes))


def test_what_is_covered_and_why_not() -> None:
    network, recipe = MNIST.network, MNIST.recipe

    def found(*, network=network, precision="bf16", gpu=facts(), **changes: Any) -> str:  # noqa: B008
        stack = recognise_stack(network)
        assert isinstance(stack, DenseStack)
        plan = recognise(stack, dataclasses.replace(recipe, **changes), precision, gpu)
        return plan.reason if isinstance(plan, NotCovered) else "covered"

    def sized(*sizes: int, **more: Any) -> Network:
        return Network.from_sizes(sizes, **more)

    adam = AdamHyper(beta1=0.9, beta2=0.999, eps=1e-8)
    assert found() == "covered"
    assert found(precision="fp16") == "covered"
    assert found(batch_size=16) == "covered"
    assert found(batch_size=1024) == "covered"
    assert found(network=sized(784, 512, 64)) == "covered"
    assert found(precision="tf32") == "covered"
    assert found(precision="float32") == "covered"
    assert found(network=sized(784, 512, 10, dropout=0.5)) == "covered"
    assert found(network=sized(784, 512, 1, loss="logistic")) == "covered"
    assert found(network=sized(784, 512, 3, loss="squared")) == "covered"
    assert found(network=sized(784, 512, 10, activation="elu")) == "covered"
    assert found(optimizer=adam) == "covered"
    assert found(batch_size=100) == "covered"
    assert re.search(r"minibatch .*\b1,025 ", found(batch_size=1025))
    assert found(network=sized(784, 512, 10, activation="gelu")) == "covered"
    assert found(network=sized(784, 512, 1, loss="(z - y)**4")) == "covered"
    assert found(network=sized(784, 10)).startswith("0 hidden layers ")
    assert found(network=sized(784, 64, 64, 64, 64, 64, 10)).startswith("5 hidden layers ")
    assert found(network=sized(784, 512, 65)).startswith("65 outputs ")
    assert "network" in found(network=sized(2048, 4096, 4096, 10))
    old = SimpleNamespace(compute_capability=(7, 5), **H200)
    assert "compute capability 7.5 " in found(gpu=old)
    assert "network" in found(gpu=facts(shared_bytes=48 << 10))
