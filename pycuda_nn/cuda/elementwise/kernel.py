"""Elementwise expressions on the GPU: one fused kernel each, compiled at its first use."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pycuda.driver as cuda

from pycuda_nn.cuda.elementwise.operands import BLOCK, ITEM, Chip, DeviceArray, addresses, sweep
from pycuda_nn.cuda.elementwise.single import OPTIONS, SINGLE, source_of
from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.errors import ShapeError
from pycuda_nn.expression import Expression, Program, program

Stream: TypeAlias = "cuda.Stream | None"

_ENTRIES = ("narrow", "wide", "single")


class Kernel:
    """The kernel of an expression, made by :meth:`Elementwise.compile`.

    ``program.evaluate`` computes the same in numpy.
    """

    def __init__(self, program: Program, module: Module, chip: Chip) -> None:
        self.program = program
        self._chip = chip
        self._functions = module.functions
        self._struct = struct.Struct(_types(program))
        self._padding = () if program.scalars else (0.0,)

    def __call__(
        self,
        out: DeviceArray,
        /,
        *,
        stream: Stream = None,
        **values: DeviceArray | float,
    ) -> None:
        """Fill ``out`` with the value of the expression, without waiting for the GPU.

        Args:
            out: float32, C-contiguous; it can be one of the inputs, but must not overlap an input
                otherwise.
            stream: Stream of the launch; None for the default stream.
            values: Array of each input, of the shape of ``out``, and number of each named scalar.

        Raises:
            ShapeError: The arguments do not fit; nothing was launched.
        """
        target, sources, count = addresses(self.program, out, values)
        self.bind(target, sources, count, self.program.numbers(values), stream)()

    def bind(
        self,
        out: int,
        inputs: Sequence[int],
        count: int,
        scalars: Sequence[float] = (),
        stream: Stream = None,
    ) -> Callable[[], object]:
        """Return a function that queues this launch on ``stream`` with no other work per call.

        Args:
            out, inputs: Addresses of ``count`` float32 each, which must stay allocated.
            scalars: In the order of ``program.scalars``, in the range of float32.

        Raises:
            ShapeError: The arguments do not fit.
        """
        expected = len(self.program.inputs), len(self.program.scalars)
        if (len(inputs), len(scalars)) != expected:
            raise ShapeError(
                f"elementwise: got {len(inputs)} inputs and {len(scalars)} scalars, "
                f"but the expression has {expected[0]} and {expected[1]}"
            )
        plan = sweep(self._chip, out, inputs, count)
        if plan is None:
            return _nothing
        firsts = [address + ITEM * plan.before for address in (out, *inputs)]
        sizes = plan.packs, plan.before, plan.edges
        packed = self._struct.pack(*firsts, *sizes, *scalars, *self._padding)
        # PyCUDA's prepared_async_call also makes this call, but its preparation takes longer.
        launch: Any = self._functions[plan.entry]._launch_kernel
        return functools.partial(launch, (plan.blocks, 1), (BLOCK, 1, 1), packed, 0, stream)


class Elementwise:
    """The operations that replace NPP on one device, and all expressions of them.

    The functions fill ``out``, which can be an input itself, and return nothing. All arrays must be
    float32, C-contiguous and of the same shape; otherwise ShapeError is raised and nothing is
    launched.
    """

    def __init__(self, device: Device) -> None:
        """Use ``device``; its context must be active in every call."""
        self._device = device
        facts = device.facts
        self._chip = Chip(multiprocessors=facts.multiprocessors, l2_bytes=facts.l2_bytes)
        self._modules: dict[object, Module] = {}
        self._single: dict[str, Kernel] = {}

    def compile(self, expression: Expression) -> Kernel:
        """Return the kernel of ``expression``; kernels of the same structure share their code.

        Raises:
            ShapeError: The expression has no input, or a name is both an input and a scalar.
            KernelBuildError: No compiler was found.
        """
        made = program(expression)
        if made.structure not in self._modules:
            types = dict.fromkeys(_ENTRIES, _types(made))
            module = Module(self._device, source_of(made), types, OPTIONS)
            self._modules[made.structure] = module
        return Kernel(made, self._modules[made.structure], self._chip)

    def single(self, name: str) -> Kernel:
        """Return a kernel of :data:`~pycuda_nn.cuda.elementwise.single.SINGLE`."""
        if name not in self._single:
            self._single[name] = self.compile(SINGLE[name])
        return self._single[name]

    def mulc(self, x: DeviceArray, c: float, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with x c."""
        self.single("mulc")(out, stream=stream, x=x, c=c)

    def addc(self, x: DeviceArray, c: float, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with x + c."""
        self.single("addc")(out, stream=stream, x=x, c=c)

    def mul(
        self, x: DeviceArray, y: DeviceArray, *, out: DeviceArray, stream: Stream = None
    ) -> None:
        """Fill ``out`` with x y."""
        self.single("mul")(out, stream=stream, x=x, y=y)

    def add(
        self, x: DeviceArray, y: DeviceArray, *, out: DeviceArray, stream: Stream = None
    ) -> None:
        """Fill ``out`` with x + y."""
        self.single("add")(out, stream=stream, x=x, y=y)

    def sub(
        self, x: DeviceArray, y: DeviceArray, *, out: DeviceArray, stream: Stream = None
    ) -> None:
        """Fill ``out`` with x - y."""
        self.single("sub")(out, stream=stream, x=x, y=y)

    def exp(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with e to the power of x."""
        self.single("exp")(out, stream=stream, x=x)

    def ln(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with the natural logarithm of x."""
        self.single("ln")(out, stream=stream, x=x)

    def sqr(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with x x."""
        self.single("sqr")(out, stream=stream, x=x)

    def sqrt(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with the square root of x."""
        self.single("sqrt")(out, stream=stream, x=x)

    def absolute(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with |x|."""
        self.single("absolute")(out, stream=stream, x=x)

    def threshold(
        self,
        x: DeviceArray,
        level: float,
        value: float | None = None,
        *,
        out: DeviceArray,
        stream: Stream = None,
    ) -> None:
        """Fill ``out`` with ``value`` (default: ``level``) where x < level, else with x."""
        other = level if value is None else value
        self.single("threshold")(out, stream=stream, x=x, level=level, value=other)

    def sigmoid(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with 1 / (1 + exp(-x))."""
        self.single("sigmoid")(out, stream=stream, x=x)

    def tanh(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with the hyperbolic tangent of x."""
        self.single("tanh")(out, stream=stream, x=x)

    def relu(self, x: DeviceArray, *, out: DeviceArray, stream: Stream = None) -> None:
        """Fill ``out`` with max(x, 0)."""
        self.single("relu")(out, stream=stream, x=x)

    def sigmoid_grad(
        self, delta: DeviceArray, a: DeviceArray, *, out: DeviceArray, stream: Stream = None
    ) -> None:
        """Fill ``out`` with delta a (1 - a), where a = sigmoid(z)."""
        self.single("sigmoid_grad")(out, stream=stream, delta=delta, a=a)

    def tanh_grad(
        self, delta: DeviceArray, a: DeviceArray, *, out: DeviceArray, stream: Stream = None
    ) -> None:
        """Fill ``out`` with delta (1 - a a), where a = tanh(z)."""
        self.single("tanh_grad")(out, stream=stream, delta=delta, a=a)

    def relu_grad(
        self, delta: DeviceArray, a: DeviceArray, *, out: DeviceArray, stream: Stream = None
    ) -> None:
        """Fill ``out`` with delta where a = relu(z) is above 0, else 0."""
        self.single("relu_grad")(out, stream=stream, delta=delta, a=a)


def _types(program: Program) -> str:
    scalars = max(1, len(program.scalars))  # like SCALARS in the source: the struct is never empty
    return "P" * (1 + len(program.inputs)) + "qii" + "f" * scalars


def _nothing() -> None:
    """Do nothing: the arrays are empty."""
