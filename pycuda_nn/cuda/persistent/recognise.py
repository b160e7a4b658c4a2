"""Decide whether the persistent kernel supports a training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pycuda_nn.cuda.layout import padded
from pycuda_nn.cuda.persistent.plan import KernelPlan, quickest
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.layers import Softmax
from pycuda_nn.protocols import SgdHyper, TrainingRecipe

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Facts

_PRECISIONS = ("bf16", "fp16")
_CAPABILITY = (8, 0)  # asynchronous copies, bfloat16 in tensor cores
_ACTIVATIONS = ("relu", "tanh", "sigmoid")  # as in words.cuh
_MAX_HIDDEN, _MAX_BATCH, _MAX_OUTPUTS = 4, 512, 64


def recognise(
    stack: DenseStack, recipe: TrainingRecipe, precision: str, facts: Facts
) -> KernelPlan | NotCovered:
    """Return the plan of the persistent kernel for a training on a GPU, or why it has none.

    It supports 1 to 4 hidden layers, softmax over up to 64 classes, momentum SGD without dropout,
    batches of 16 to 512 rows in steps of 16, bf16 and fp16. The weights must fit in registers and
    the operands of a step in shared memory: up to about a million weights on an H200.
    """
    for reason in _reasons(stack, recipe, precision, facts):
        return NotCovered(f"{reason} not supported by the persistent kernel")
    plan = quickest(stack, recipe.batch_size, facts.multiprocessors, facts.shared_bytes)
    if plan is None:
        return NotCovered("the network is too large for the persistent kernel on this GPU")
    return plan


def _reasons(
    stack: DenseStack, recipe: TrainingRecipe, precision: str, facts: Facts
) -> Iterator[str]:
    """Yield the properties of this training that are not supported, with their verb."""
    hidden, batch = len(stack.sizes) - 2, recipe.batch_size
    if precision not in _PRECISIONS:
        yield f"{precision} is"
    if facts.compute_capability < _CAPABILITY:
        yield "compute capability {}.{} is".format(*facts.compute_capability)
    if type(stack.loss) is not Softmax:
        yield f"the loss '{stack.loss.name}' is"
    if stack.activation not in _ACTIVATIONS:
        yield f"the activation '{stack.activation}' is"
    if not isinstance(recipe.optimizer, SgdHyper):
        yield "Adam is"
    if stack.drops:
        yield "dropout is"
    if not 1 <= hidden <= _MAX_HIDDEN:
        yield f"{hidden} hidden layers are"
    if padded(stack.sizes[-1]) > _MAX_OUTPUTS:
        yield f"{stack.sizes[-1]} classes are"
    if not 0 < batch <= _MAX_BATCH or batch % 16:
        yield f"a minibatch of {batch:,} is"
