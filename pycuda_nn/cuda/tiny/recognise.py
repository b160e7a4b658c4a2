"""Decide whether the tiny kernel supports a training, and with how many blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.cuda.tiny.plan import (
    ADAM,
    MOMENTUM,
    NESTEROV,
    TinyPlan,
    microseconds,
    plans,
    rounds,
)
from pycuda_nn.protocols import AdamHyper, TrainingRecipe

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Facts

_CAPABILITY = (8, 0)  # asynchronous copies
_CLUSTERS = (9, 0)


def recognise(
    stack: DenseStack, recipe: TrainingRecipe, precision: str, facts: Facts, networks: int = 1
) -> TinyPlan | NotCovered:
    """Return the plan of the tiny kernel for a training on a GPU, or why it has none.

    ``networks`` of them train at once, each in blocks of its own.

    All weights, and the values of the rows of a block, must fit in the shared memory of a
    multiprocessor: about 50,000 weights on an H200.
    """
    if facts.compute_capability < _CAPABILITY:
        version = "{}.{}".format(*facts.compute_capability)
        return NotCovered(f"compute capability {version} is not supported by the tiny kernel")
    if stack.kernels.row is None:
        return NotCovered(f"the loss '{stack.loss.label}' is not supported by the tiny kernel")
    found = plans(
        stack,
        recipe.batch_size,
        precision,
        optimizer_of(recipe),
        multiprocessors=facts.multiprocessors,
        shared_bytes=facts.shared_bytes,
        clusters=facts.compute_capability >= _CLUSTERS,
        networks=networks,
    )
    if not found:
        return NotCovered("the network is too large for the tiny kernel on this GPU")
    gpu = facts.multiprocessors
    return min(found, key=lambda plan: rounds(plan, networks, gpu) * microseconds(plan))


def optimizer_of(recipe: TrainingRecipe) -> int:
    """Return ``OPTIMIZER`` of ``update.cuh``."""
    if isinstance(recipe.optimizer, AdamHyper):
        return ADAM
    return NESTEROV if recipe.optimizer.nesterov else MOMENTUM
