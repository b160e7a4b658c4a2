"""What the steps of a session share besides memory: the source of minibatches, and the streams."""

from __future__ import annotations

from dataclasses import dataclass

import pycuda.driver as cuda

_SIDES = 3  # streams beside the main one


@dataclass(frozen=True, kw_only=True)
class BatchSource:
    """Where minibatches come from; all are addresses on the device.

    Attributes:
        x, y: All training rows, in the type of activations with padded width, and their targets.
        order: int32 index of a row for each place of the epoch.
        rates, losses: float32, one for each step of the epoch.
        clock: Steps done in this epoch and in all.
    """

    x: int
    y: int
    order: int
    rates: int
    losses: int
    clock: int


class Streams:
    """A main stream and some beside it, each with work space for its products."""

    def __init__(self, workspaces: list[tuple[int, int]]) -> None:
        self.workspaces = workspaces
        self.all = [cuda.Stream() for _ in workspaces]
        self.main, *self.sides = self.all

    def side(self, layer: int) -> int:
        """Return the number, in ``all``, of the stream for the weights of ``layer``."""
        return 1 + layer % len(self.sides)


N_STREAMS = 1 + _SIDES
