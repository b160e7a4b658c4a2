"""Decide whether the persistent kernel supports a training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pycuda_nn.cuda.layout import padded
from pycuda_nn.cuda.persistent.plan import KernelPlan, quickest
from pycuda_nn.cuda.persistent.variant import LOSSES, variant_of
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.protocols import TrainingRecipe

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Facts

_CAPABILITY = (8, 0)  # asynchronous copies, bfloat16 and tf32 in tensor cores
_MAX_HIDDEN, _MAX_BATCH, _MAX_OUTPUTS = 4, 1024, 64


def recognise(
    stack: DenseStack, recipe: TrainingRecipe, precision: str, facts: Facts
) -> KernelPlan | NotCovered:
    """Return the plan of the persistent kernel for a training on a GPU, or why it has none.

    It supports 1 to 4 hidden layers, up to 64 outputs, batches of up to 1,024 rows, and every
    precision, optimizer, activation, dropout and loss with kernels. The weights and their moments
    must fit in registers and the operands of a step in shared memory: up to about a million weights
    on an H200, two thirds of that with Adam.
    """
    for reason in _reasons(stack, recipe, facts):
        return NotCovered(f"{reason} not supported by the persistent kernel")
    variant = variant_of(stack, recipe, precision)
    gpu = (facts.multiprocessors, facts.shared_bytes)
    plan = quickest(stack, variant, recipe.batch_size, *gpu)
    if plan is None:
        return NotCovered("the network is too large for the persistent kernel on this GPU")
    return plan


def _reasons(stack: DenseStack, recipe: TrainingRecipe, facts: Facts) -> Iterator[str]:
    """Yield the properties of this training that are not supported, with their verb."""
    hidden, batch = len(stack.sizes) - 2, recipe.batch_size
    if facts.compute_capability < _CAPABILITY:
        yield "compute capability {}.{} is".format(*facts.compute_capability)
    if type(stack.loss) not in LOSSES:
        yield f"the loss '{stack.loss.label}' is"
    if not 1 <= hidden <= _MAX_HIDDEN:
        yield f"{hidden} hidden layers are"
    if padded(stack.sizes[-1]) > _MAX_OUTPUTS:
        yield f"{stack.sizes[-1]} outputs are"
    if batch > _MAX_BATCH:
        yield f"a minibatch of {batch:,} is"
