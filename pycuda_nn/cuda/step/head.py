"""Decide whether a network computes its last layer and loss in the kernel of head.cuh."""

from __future__ import annotations

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.layers import Softmax

_CLASSES = 16
_REGISTERS = 210  # of the 255 registers of a thread
_SHARED_BYTES = 48 << 10  # limit of a block for static shared memory
_WARPS, _SMALL_BYTES = 8, 640  # warps of a block; size of its shared arrays except the union


def fits(stack: DenseStack, item_bytes: int) -> bool:
    """Return whether the kernel supports ``stack`` with activations of ``item_bytes``."""
    sizes, classes = ParameterLayout(stack.network).sizes, stack.sizes[-1]
    softmax = type(stack.loss) is Softmax
    draws = stack.drops and stack.activation != "relu"
    if not softmax or len(sizes) < 3 or draws or stack.keeps_z or classes > _CLASSES:
        return False
    width, pack = sizes[-2], 16 // item_bytes
    chunks = -(-width // (32 * pack))
    registers = classes * (1 + 4 * chunks) + chunks * (4 + pack)  # weights, h, sums
    shared = max(classes * (width + pack) * item_bytes, 4 * _WARPS * width) + _SMALL_BYTES
    return registers <= _REGISTERS and shared <= _SHARED_BYTES
