"""Small networks: many steps in one launch of a kernel whose blocks are all resident."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any

from pycuda_nn.cuda.persistent.device_code import FILES
from pycuda_nn.cuda.persistent.plan import KernelPlan
from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import build, kernel_source
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.errors import DeviceError
from pycuda_nn.protocols import AdamHyper, TrainingRecipe
from pycuda_nn.rng import Purpose

if TYPE_CHECKING:
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.device import Device, Facts, Memory
    from pycuda_nn.cuda.step.streams import BatchSource

_THREADS = 384
_EMPTY = 0xFFFFFFFF  # a word of the exchange that is not written yet


class PersistentKernel:
    """Trains many full minibatches of a small network in one launch."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        plan: KernelPlan,
        stack: DenseStack,
        recipe: TrainingRecipe,
        precision: str,
        *,
        options: tuple[str, ...] = (),
    ) -> None:
        """Compile for this network and allocate workspace; the context must be active.

        Args:
            device: Device of the active context.
            memory: Allocates the workspace.
            plan: Distribution of the work, from ``recognise``.
            stack: The network.
            recipe: The recipe of the plan.
            precision: The precision of the plan.
            options: Additional compiler options.

        Raises:
            DeviceError: The blocks of the plan do not fit on this GPU.
            KernelBuildError: The kernel cannot be compiled.
            OutOfDeviceMemory: There is not enough memory for the workspace.
        """
        self.plan = plan
        macro = f"-D{PRECISIONS[precision].macro}"
        code = build(source_of(plan), _arch(device.facts), (macro, *options))
        self._constants = constants(stack, recipe)
        self._module, self._kernel = _load(code, plan)
        self._exchange = memory.allocate(
            4 * plan.exchange_words, "the exchange of the persistent kernel"
        )
        self._counter = memory.allocate(4, "the counter of the persistent kernel")
        self.profile = 0  # address of CLOCKS (words.cuh) int64 per block, with -DPROFILE

    def run(
        self,
        stream: cuda.Stream,
        source: BatchSource,
        *,
        params: int,
        first: int,
        second: int,
        first_step: int,
        n_steps: int,
    ) -> None:
        """Queue steps ``first_step`` to ``first_step + n_steps - 1`` of the epoch on ``stream``.

        Args:
            stream: Where they run.
            source: Rows, orders, rates, losses and clock; its minibatches are full.
            params, first, second: Addresses of parameters and moments, float32 in the padded
                layout; updated.
            first_step, n_steps: Steps of the epoch.

        Raises:
            DeviceError: The driver rejects the launch.
        """
        if n_steps <= 0:
            return
        self._launch(
            stream,
            structs.Persistent(
                **dataclasses.asdict(source),
                **self._constants,
                params=params,
                first=first,
                second=second,
                exchange=self._exchange,
                counter=self._counter,
                profile=self.profile,
                first_step=first_step,
                n_steps=n_steps,
            ),
        )

    def close(self) -> None:
        """Unload the kernel; ``memory`` owns the workspace."""
        if self._module is not None:
            from cuda.bindings import driver

            driver.cuModuleUnload(self._module)
            self._module = None

    def _launch(self, stream: cuda.Stream, argument: structs.Persistent) -> None:
        from cuda.bindings import driver

        where, plan = driver.CUstream(stream.handle), self.plan
        _checked(driver.cuMemsetD32Async(self._exchange, _EMPTY, plan.exchange_words, where))
        _checked(driver.cuMemsetD32Async(self._counter, 0, 1, where))
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        grid, block, shared = (plan.blocks, 1, 1), (_THREADS, 1, 1), plan.shared_bytes
        address = ctypes.addressof(pointers)
        _checked(
            driver.cuLaunchCooperativeKernel(self._kernel, *grid, *block, shared, where, address)
        )


def source_of(plan: KernelPlan) -> str:
    """Return the complete source of the kernel of a plan."""
    return plan.source() + plan.variant.functions + kernel_source(*FILES)


def constants(stack: DenseStack, recipe: TrainingRecipe) -> dict[str, float]:
    """Return the fields of the argument of the kernel that a training does not change."""
    optimizer, dropout = recipe.optimizer, stack.dropout
    beta1, beta2, eps = 0.0, 0.0, 0.0
    if isinstance(optimizer, AdamHyper):
        _, beta1, beta2, eps = optimizer.scalars(0.0, 1)
    else:
        beta1 = optimizer.momentum
    return {
        "seed": recipe.seed,
        "purpose": int(Purpose.DROPOUT),
        "threshold": dropout.threshold,
        "scale": dropout.scale,
        "momentum": beta1,
        "beta2": beta2,
        "eps": eps,
        "l2": recipe.l2,
    }


def _arch(facts: Facts) -> str:
    """Return the architecture; on Hopper the variant in which warps can exchange registers."""
    return "sm_90a" if facts.compute_capability == (9, 0) else facts.arch


def _load(code: bytes, plan: KernelPlan) -> tuple[Any, Any]:
    """Return the module and its kernel; all blocks of the plan can be resident."""
    from cuda.bindings import driver

    (module,) = _checked(driver.cuModuleLoadData(code))
    (kernel,) = _checked(driver.cuModuleGetFunction(module, b"train_steps"))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _checked(driver.cuFuncSetAttribute(kernel, attribute, plan.shared_bytes))
    (resident,) = _checked(
        driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel, _THREADS, plan.shared_bytes)
    )
    if not resident:
        raise DeviceError("persistent kernel: a block does not fit on a multiprocessor")
    return module, kernel


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *values = answer
    if int(status):
        raise DeviceError(f"persistent kernel: {status}")
    return tuple(values)
