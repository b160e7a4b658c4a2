"""Networks with one hidden layer: many steps of each in a cluster of blocks, in one launch for all.

Weights and moments stay in registers; ``columns.cuh`` explains it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pycuda.driver as cuda

from pycuda_nn.cuda.many.columns_plan import ColumnsPlan
from pycuda_nn.cuda.many.plan import ManyPlan
from pycuda_nn.cuda.many.sources import COLUMNS_FILES
from pycuda_nn.cuda.many.structs import ManyColumns
from pycuda_nn.cuda.runtime.compiler import build, kernel_source
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import BatchSource
from pycuda_nn.cuda.step.weights import Weights
from pycuda_nn.cuda.training.epoch import STEPS_A_LAUNCH, Epoch
from pycuda_nn.errors import DeviceError
from pycuda_nn.rng import Purpose

_THREADS = 256


def options_of(made: ColumnsPlan, plan: ManyPlan, master_kind: int) -> tuple[str, ...]:
    """Return the compiler options of the kernel."""
    return (*plan.options(master_kind), "-DGRADIENT", *made.macros())


class ColumnsKernel:
    """Trains the networks that :meth:`choose` names, at first all."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        made: ColumnsPlan,
        of: ManyPlan,
        weights: Weights,
        *,
        nets: int,
        slots: int,
        steps: int,
    ) -> None:
        """Compile for these networks; the context must be active.

        Args:
            device: Device of the active context.
            memory: Allocates the workspace.
            made: Distribution of the work of each network.
            of: The networks.
            weights: Their parameters and moments.
            nets: Address of their settings.
            slots: Distance of the orders of two networks.
            steps: Distance of the rates and the losses of two networks.

        Raises:
            DeviceError: The shared memory of a block is too small.
            KernelBuildError, OutOfDeviceMemory: See :class:`TinyKernel`.
        """
        self.plan, self._chosen = made, of.count
        source, options = kernel_source(*COLUMNS_FILES), options_of(made, of, weights.master_kind)
        code = build(source, device.facts.arch, options)
        self._members = memory.allocate(4 * of.count, "the numbers of the networks")
        cuda.memcpy_htod(self._members, np.arange(of.count, dtype=np.int32))
        self._module, self._function = _load(code, made)
        self._fields = {
            "weight": weights.values,
            "master": weights.master,
            "first": weights.first,
            "second": weights.second,
            "nets": nets,
            "members": self._members,
            "purpose": int(Purpose.DROPOUT),
            "networks": of.count,
            "slots": slots,
            "steps": steps,
        }

    def choose(self, members: Sequence[int], stream: cuda.Stream) -> None:
        """Train only the networks with these numbers in later launches on ``stream``."""
        self._chosen = len(members)
        cuda.memcpy_htod_async(self._members, np.array(members, dtype=np.int32), stream)

    def run(self, stream: cuda.Stream, source: BatchSource, first_step: int, n_steps: int) -> None:
        """Queue steps ``first_step`` to ``first_step + n_steps - 1`` of an epoch on ``stream``.

        Raises:
            DeviceError: The driver rejects the launch.
        """
        from cuda.bindings import driver

        argument = ManyColumns(
            x=source.x, y=source.y, order=source.order, rates=source.rates, losses=source.losses,
            clock=source.clock, first_step=first_step, n_steps=n_steps, **self._fields,
        )  # fmt: skip
        plan, pointers = self.plan, (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        shape = (plan.blocks, 1, self._chosen, plan.threads, 1, 1, plan.shared_bytes)
        where = driver.CUstream(stream.handle)
        _checked(
            driver.cuLaunchKernel(self._function, *shape, where, ctypes.addressof(pointers), 0)
        )

    def close(self) -> None:
        """Unload the kernel; ``memory`` owns the workspace."""
        if self._module is not None:
            from cuda.bindings import driver

            driver.cuModuleUnload(self._module)
            self._module = None


class ColumnsEpoch(Epoch):
    """Full minibatches in one kernel; a step of the remaining rows follows."""

    def __init__(
        self,
        kernel: ColumnsKernel,
        module: Module,
        source: BatchSource,
        stream: cuda.Stream,
        full_steps: int,
        networks: int,
        rest: TrainingStep | None,
    ) -> None:
        super().__init__(full_steps, rest)
        self._kernel, self._module, self._networks = kernel, module, networks
        self._source, self._stream = source, stream

    def launch_full(self, steps: int) -> None:
        """See :class:`Epoch`."""
        for first in range(0, steps, STEPS_A_LAUNCH):
            count = min(STEPS_A_LAUNCH, steps - first)
            self._kernel.run(self._stream, self._source, first, count)
        self._module.launch(
            "tick_many", (-(-self._networks // _THREADS), 1), _THREADS, self._stream,
            self._source.clock, steps, self._networks,
        )  # fmt: skip


def _load(code: bytes, plan: ColumnsPlan) -> tuple[Any, Any]:
    """Return the module and its kernel; its clusters can have up to 16 blocks."""
    from cuda.bindings import driver

    (module,) = _checked(driver.cuModuleLoadData(code))
    (kernel,) = _checked(driver.cuModuleGetFunction(module, b"columns_steps"))
    names = driver.CUfunction_attribute
    for name, value in (
        (names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, plan.shared_bytes),
        (names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
    ):
        _checked(driver.cuFuncSetAttribute(kernel, name, value))
    return module, kernel


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *values = answer
    if int(status):
        raise DeviceError(f"column kernel: {status}")
    return tuple(values)
