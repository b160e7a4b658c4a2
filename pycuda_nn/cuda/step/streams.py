"""The source of minibatches and the streams, which the steps of a session share."""

from __future__ import annotations

from dataclasses import dataclass

import pycuda.driver as cuda

_SIDES = 3  # side streams


@dataclass(frozen=True, kw_only=True)
class BatchSource:
    """Source of the minibatches; all attributes are device addresses.

    Attributes:
        x, y: All training rows, in the type of activations with padded width, and their targets.
        order: int32 row index of each place of the epoch.
        rates, losses: float32 numbers of each step of the epoch.
        clock: Finished steps of this epoch, and of all epochs.
    """

    x: int
    y: int
    order: int
    rates: int
    losses: int
    clock: int


class Streams:
    """A main stream and side streams, each with workspace for its products."""

    def __init__(self, workspaces: list[tuple[int, int]]) -> None:
        self.workspaces = workspaces
        self.all = [cuda.Stream() for _ in workspaces]
        self.main, *self.sides = self.all

    def side(self, layer: int) -> int:
        """Return the index in ``all`` of the stream for the weights of ``layer``."""
        return 1 + layer % len(self.sides)


N_STREAMS = 1 + _SIDES
