"""For which networks the last layer and its loss are the one kernel of head.cuh."""

from __future__ import annotations

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.layers import Softmax

_CLASSES = 16
_REGISTERS = 210  # of the 255 of a thread
_SHARED_BYTES = 48 << 10  # of a block, where the size is known to the compiler
_WARPS, _SMALL_BYTES = 8, 640  # of a block; its shared arrays besides the union


def fits(stack: DenseStack, item_bytes: int) -> bool:
    """Return whether the kernel can do such a training with activations of so many bytes."""
    sizes, classes = ParameterLayout(stack.network).sizes, stack.sizes[-1]
    softmax = type(stack.loss) is Softmax
    if not softmax or len(sizes) < 3 or stack.drops or classes > _CLASSES:
        return False
    width, pack = sizes[-2], 16 // item_bytes
    chunks = -(-width // (32 * pack))
    registers = classes * (1 + 4 * chunks) + chunks * (4 + pack)  # weights, h, sums
    shared = max(classes * (width + pack) * item_bytes, 4 * _WARPS * width) + _SMALL_BYTES
    return registers <= _REGISTERS and shared <= _SHARED_BYTES
