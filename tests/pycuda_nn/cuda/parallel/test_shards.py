"""Rows and weights are divided completely, and the exchange has room for all of them."""

from __future__ import annotations

import itertools

import pytest

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.parallel.room import Blocks, blocks_of, room_of
from pycuda_nn.cuda.parallel.shards import LINE, Shards, dealt_rows, rows_of, share_of
from pycuda_nn.cuda.parallel.structs import FLAGS, MOST_RANKS
from pycuda_nn.network import Network

SIZES = range(1, MOST_RANKS + 1)
NETWORKS = [(3, 2), (20, 48, 5), (512, 2048, 2048, 512, 10), (64,) * 9]


def _layout(widths: tuple[int, ...]) -> ParameterLayout:
    return ParameterLayout(Network.from_sizes(widths, activation="relu", loss="squared"))


@pytest.mark.parametrize("size", SIZES)
def test_a_minibatch_is_divided_evenly_and_in_order(size: int) -> None:
    for rows in (0, 1, 2, 15, 16, 17, 250, 8192):
        parts = [rows_of(rank, size, rows) for rank in range(size)]
        assert [row for part in parts for row in part] == list(range(rows))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("size", SIZES)
def test_the_owner_of_a_row_is_found_by_a_division(size: int) -> None:
    for rows in (1, 2, 15, 16, 17, 250, 1000):
        share = share_of(size, rows)
        parts = [dealt_rows(rank, size, rows) for rank in range(size)]
        assert [row for part in parts for row in part] == list(range(rows))
        for row in range(rows):
            assert row in parts[row // share]
            assert row - parts[row // share].start == row - row // share * share


@pytest.mark.parametrize("widths", NETWORKS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
def test_every_weight_has_one_owner_and_every_bias_all(widths: tuple[int, ...], size: int) -> None:
    layout = _layout(widths)
    shards = [Shards(layout, rank, size) for rank in range(size)]
    for number, layer in enumerate(layout.layers):
        ranges = [one.range_of(number, layer) for one in shards]
        edges = list(itertools.chain(*ranges))
        assert edges[0] == 0
        assert edges[-1] == layer.inputs * layer.outputs
        assert edges[1:-1:2] == edges[2::2]
        assert all(edge % LINE == 0 for edge in edges)
    for one in shards:
        assert (one.biases.start, one.biases.stop) == (layout.n_weights, layout.n_params)
        at = 0
        for piece in one.pieces:  # without a gap in the memory of the rank
            assert piece.at == at
            assert piece.start + piece.shift == at
            at += piece.stop - piece.start
        assert at == one.count


@pytest.mark.parametrize("widths", NETWORKS, ids=str)
@pytest.mark.parametrize("size", [2, 5, 16])
def test_nothing_in_the_room_overlaps(widths: tuple[int, ...], size: int) -> None:
    layers = _layout(widths).layers
    room = room_of(layers, size)
    spans = [(at, 4 * FLAGS) for at in room.flags]
    spans += [(at, size * 4 * layer.outputs) for at, layer in zip(room.sums, layers, strict=True)]
    spans += [(at, 16) for at in room.local] + [(room.trouble, 4)]
    spans.sort()
    for (at, n_bytes), (following, _) in itertools.pairwise([*spans, (room.n_bytes, 0)]):
        assert at + n_bytes <= following
        assert at % 256 == 0


def _blocks(widths: tuple[int, ...], multiprocessors: int, size: int) -> Blocks:
    blocks = blocks_of(_layout(widths).layers, multiprocessors, size)
    assert len(blocks.weights) == len(blocks.sums) == len(widths) - 1
    assert min(*blocks.weights, *blocks.sums) >= 1
    return blocks


@pytest.mark.parametrize("widths", NETWORKS, ids=str)
@pytest.mark.parametrize("multiprocessors", [60, 78, 132])
@pytest.mark.parametrize("size", [2, 4, 16])
def test_exchanges_that_wait_leave_multiprocessors_for_products(
    widths: tuple[int, ...], multiprocessors: int, size: int
) -> None:
    blocks = _blocks(widths, multiprocessors, size)
    assert sum(blocks.weights[1:]) <= multiprocessors - 8
    assert blocks.weights[0] + sum(blocks.weights[2:]) <= multiprocessors - 8
