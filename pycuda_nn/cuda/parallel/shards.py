"""Divide rows and weights over the ranks; this needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass

from pycuda_nn.cuda.layout import PaddedDense, ParameterLayout

LINE = 8  # weights that a thread updates at once


def rows_of(rank: int, size: int, rows: int) -> range:
    """Return the rows of ``rank`` in a minibatch of ``rows``: as even as possible, in order."""
    return range(rows * rank // size, rows * (rank + 1) // size)


def dealt_rows(rank: int, size: int, rows: int) -> range:
    """Return the rows of a part that ``rank`` evaluates, and holds if the part is dealt out.

    All ranks but the last have the same number, so that a kernel finds the owner by a division.
    """
    share = share_of(size, rows)
    return range(min(rank * share, rows), min((rank + 1) * share, rows))


def share_of(size: int, rows: int) -> int:
    """Return the rows of a part for every rank but the last."""
    return max(1, -(-rows // size))


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Consecutive parameters of which a rank holds master and moments.

    Attributes:
        start, stop: Place in the flat parameters of the layout.
        at: Place in the memory of the rank, in elements.
    """

    start: int
    stop: int
    at: int

    @property
    def shift(self) -> int:
        """Number to add to a place in the flat parameters for the place in memory."""
        return self.at - self.start


class Shards:
    """The parameters that one rank updates: a shard of each layer's weights, and all biases."""

    def __init__(self, layout: ParameterLayout, rank: int, size: int) -> None:
        """Divide the weights of each layer by lines of 8 over ``size`` ranks."""
        self.weights: list[Piece] = []
        at = 0
        for layer in layout.layers:
            lines = layer.inputs * layer.outputs // LINE
            mine = rows_of(rank, size, lines)
            start = layer.weights + LINE * mine.start
            piece = Piece(start=start, stop=layer.weights + LINE * mine.stop, at=at)
            self.weights.append(piece)
            at += piece.stop - piece.start
        self.biases = Piece(start=layout.n_weights, stop=layout.n_params, at=at)
        self.count = at + self.biases.stop - self.biases.start

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in the order of the memory."""
        return [*self.weights, self.biases]

    def range_of(self, number: int, layer: PaddedDense) -> tuple[int, int]:
        """Return the first and the last + 1 weight of the shard, counted within its layer."""
        piece = self.weights[number]
        return piece.start - layer.weights, piece.stop - layer.weights
