"""The exchange of gradients and weights between ranks: its rules, and the built-in kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pycuda.driver as cuda

from pycuda_nn.cuda.parallel.room import THREADS, Blocks, Room, blocks_of
from pycuda_nn.cuda.parallel.shards import Shards
from pycuda_nn.cuda.parallel.structs import Dealt, Exchange, addresses
from pycuda_nn.cuda.parallel.weights import SharedWeights
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.plan import TrainingPlan

FILES = (
    "cuda/runtime/common.cuh",
    "cuda/training/rows.cuh",
    "cuda/step/update.cuh",
    "cuda/parallel/peer.cuh",
    "cuda/parallel/shared_update.cuh",
    "cuda/parallel/exchange.cuh",
    "cuda/parallel/apply.cuh",
    "cuda/parallel/dealt.cuh",
)
_SIGNATURES = {
    "exchange": Exchange,
    "send_sums": Exchange,
    "bias_sums": Exchange,
    "apply": Exchange,
    "gather_dealt": Dealt,
}


@dataclass(frozen=True, kw_only=True)
class Peers:
    """What a rank knows of the others.

    Attributes:
        rank, size: This rank, and the number of ranks.
        arenas: Address of :attr:`SharedWeights.arena` of each rank.
        host: Address of the words of the host: whether to stop, and a counter of beats.
        limit: Beats after which a rank that does not answer is given up.
        multiprocessors: Of the GPU with the fewest.
    """

    rank: int
    size: int
    arenas: Sequence[int]
    host: int
    limit: int
    multiprocessors: int


def exchange_options(plan: TrainingPlan, weights: SharedWeights, size: int) -> list[str]:
    """Return the compiler options of the kernels."""
    options = [
        f"-D{plan.precision.macro}",
        f"-DOPTIMIZER={weights.optimizer}",
        f"-DMASTER={weights.master_kind}",
        f"-DRANKS={size}",
        f"-DTHREADS={THREADS}",
    ]
    return [*options, "-DGRADIENT_FLOAT"] if weights.float_gradients else options


def exchange_module(
    device: Device, plan: TrainingPlan, weights: SharedWeights, size: int
) -> Module:
    """Return the kernels of the exchange, loaded on the active device."""
    options = exchange_options(plan, weights, size)
    return Module(device, kernel_source(*FILES), _SIGNATURES, options)


class GradientExchange(ABC):
    """Turns the gradients of all ranks into new weights on all ranks, layer by layer.

    Rules (``pycuda_nn.cuda.parallel.testing.ExchangeContract`` tests them):

    1. The gradient of a weight is the sum over the ranks, in a fixed order. The update is that of
       ``update.cuh``; it reads copy ``side`` of the weights and writes the other copy.
    2. After it, the copies that were written are equal on all ranks, bit by bit.
    3. All ranks queue the same exchanges in the same order, in one thread each.
    4. Nothing waits forever: see :class:`~pycuda_nn.cuda.parallel.host_words.HostWords`.
    """

    name: ClassVar[str]

    def __init__(
        self,
        module: Module,
        weights: SharedWeights,
        shards: Shards,
        room: Room,
        peers: Peers,
    ) -> None:
        self._module, self._weights, self._shards = module, weights, shards
        self._room, self._peers = room, peers

    @abstractmethod
    def queue_bias(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int,
        stream: cuda.Stream,
    ) -> None:  # fmt: skip
        """Queue the first part for the bias of a layer, whose partial sums exist on ``stream``."""

    @abstractmethod
    def queue_weights(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int,
        stream: cuda.Stream,
    ) -> None:  # fmt: skip
        """Queue the exchange of a layer on ``stream``, behind its gradient and the bias."""

    def stop(self) -> None:  # noqa: B027 - optional
        """End all waits of this rank that the words of the host do not end; from any thread."""

    def close(self) -> None:  # noqa: B027 - optional
        """Free what the exchange holds."""

    def arguments(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int
    ) -> Exchange:
        """Return the arguments of the kernels for a layer, in step ``j`` of a graph."""
        layer, weights, peers = context.layers[number], self._weights, self._peers
        update = kernels.update_arguments(number, j)
        update.weight = weights.value(layer.weights, side)
        update.bias = weights.value(layer.bias, side)
        for name, value in weights.shard(self._shards.weights[number], layer.weights).items():
            setattr(update, name, value)
        for name, value in weights.shard(self._shards.biases, layer.bias).items():
            setattr(update, f"bias_{name}", value)
        if number != context.last:
            update.loss = 0
        begin, end = self._shards.range_of(number, layer)
        rooms = [arena + weights.extra for arena in peers.arenas]
        gradient = weights.gradients + weights.gradient_bytes * layer.weights
        other = weights.value(layer.weights, 1 - side) - weights.arena
        return Exchange(
            gradients=addresses([arena + gradient for arena in peers.arenas]),
            weights=addresses([arena + other for arena in peers.arenas]),
            sums=addresses([room + self._room.sums[number] for room in rooms]),
            flags=addresses([room + self._room.flags[number] for room in rooms]),
            bias_next=weights.value(layer.bias, 1 - side),
            local=weights.arena + weights.extra + self._room.local[number],
            trouble=weights.arena + weights.extra + self._room.trouble,
            host=peers.host,
            u=update,
            rank=peers.rank,
            begin=begin,
            end=end,
            limit=peers.limit,
        )


class PeerExchange(GradientExchange):
    """Kernels that read and write the memory of the other GPUs directly, over NVLink or PCIe.

    The sums of a bias are sent before the gradient of its layer is complete; the exchange of the
    layer then updates both.
    """

    name = "peer"

    def queue_bias(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int,
        stream: cuda.Stream,
    ) -> None:  # fmt: skip
        """See :class:`GradientExchange`."""
        blocks = self._blocks(context).sums[number]
        arguments = self.arguments(context, kernels, number, j, side)
        self._module.launch("send_sums", (blocks, 1), THREADS, stream, arguments)

    def queue_weights(
        self, context: StepContext, kernels: StepKernels, number: int, j: int, side: int,
        stream: cuda.Stream,
    ) -> None:  # fmt: skip
        """See :class:`GradientExchange`."""
        blocks = self._blocks(context).weights[number]
        arguments = self.arguments(context, kernels, number, j, side)
        self._module.launch("exchange", (blocks, 1), THREADS, stream, arguments)

    def _blocks(self, context: StepContext) -> Blocks:
        peers = self._peers
        return blocks_of(context.layers, peers.multiprocessors, peers.size)
