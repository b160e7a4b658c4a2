"""Tiny networks: many steps in one launch of a kernel that keeps all weights in shared memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from pycuda_nn.cuda.runtime import structs
from pycuda_nn.cuda.runtime.compiler import build, kernel_source
from pycuda_nn.cuda.tiny.plan import TinyPlan
from pycuda_nn.errors import DeviceError
from pycuda_nn.protocols import TrainingRecipe
from pycuda_nn.rng import Purpose

if TYPE_CHECKING:
    import pycuda.driver as cuda

    from pycuda_nn.cuda.runtime.device import Device, Memory
    from pycuda_nn.cuda.step.streams import BatchSource

SHARED_FILES = (
    "cuda/runtime/common.cuh",
    "cuda/training/rows.cuh",
    "cuda/runtime/philox.cuh",
    "layers/activation.cuh",
    "layers/dropout.cuh",
    "layers/loss.cuh",
    "layers/softmax_row.cuh",
    "cuda/step/update.cuh",
)
FILES = (
    "cuda/tiny/layout.cuh",
    "cuda/tiny/device.cuh",
    "cuda/tiny/rows.cuh",
    "cuda/tiny/passes.cuh",
    "cuda/tiny/exchange.cuh",
    "cuda/tiny/update.cuh",
    "cuda/tiny/tiny.cuh",
)
ONE = ("cuda/tiny/one.cuh",)


def source_of(plan: TinyPlan, entry: tuple[str, ...] = ONE) -> str:
    """Return the source of the kernel of a plan; ``entry`` names the files of its entry."""
    stack = plan.stack
    names = (*SHARED_FILES, stack.kernels.source, *FILES, *entry)
    return plan.source() + stack.functions() + kernel_source(*names)


class TinyKernel:
    """Trains many minibatches of a tiny network in one launch.

    Attributes:
        entry: Source files of the entry of the kernel.
    """

    entry: tuple[str, ...] = ONE

    def __init__(
        self, device: Device, memory: Memory, plan: TinyPlan, recipe: TrainingRecipe
    ) -> None:
        """Compile for this network and allocate workspace; the context must be active.

        Args:
            device: Device of the active context.
            memory: Allocates the workspace.
            plan: Distribution of the work, from ``recognise``.
            recipe: Settings of the steps.

        Raises:
            DeviceError: The blocks of the plan do not fit on this GPU.
            KernelBuildError: The kernel cannot be compiled.
            OutOfDeviceMemory: There is not enough memory for the workspace.
        """
        from pycuda_nn.cuda.step.weights import hyper_scalars

        self.plan = plan
        dropout, blocks = plan.stack.dropout, plan.blocks
        self._constants = {
            "seed": recipe.seed,
            "purpose": int(Purpose.DROPOUT),
            "threshold": dropout.threshold,
            "scale": dropout.scale,
            **hyper_scalars(recipe),
        }
        what = "the exchange of the tiny kernel"
        sizes = {"counter": 1}
        if blocks > 1 and not plan.cluster:
            sizes |= {"partial": blocks * plan.params, "weights": plan.params}
            sizes |= {"block_losses": blocks}
        self._places = {name: memory.allocate(4 * n, what) for name, n in sizes.items()}
        self._kernel = LoadedKernel(device, plan, source_of(plan, self.entry))

    def run(
        self,
        stream: cuda.Stream,
        source: BatchSource,
        *,
        params: int,
        first: int,
        second: int,
        rows: int,
        first_step: int,
        n_steps: int,
    ) -> None:
        """Queue steps ``first_step`` to ``first_step + n_steps - 1`` of an epoch on ``stream``.

        Args:
            source: The minibatches; its clock must be at the start of the epoch.
            params, first, second: Addresses of the parameters and their moments, float32 in the
                padded layout; updated.
            rows: Rows of the epoch; if they do not fill the minibatches, the last one has fewer.

        Raises:
            DeviceError: The driver rejects the launch.
        """
        from cuda.bindings import driver

        if n_steps <= 0:
            return
        where = driver.CUstream(stream.handle)
        _checked(driver.cuMemsetD32Async(self._places["counter"], 0, 1, where))
        argument = structs.Tiny(
            x=source.x,
            y=source.y,
            order=source.order,
            rates=source.rates,
            losses=source.losses,
            clock=source.clock,
            params=params,
            first=first,
            second=second,
            first_step=first_step,
            n_steps=n_steps,
            rows=rows,
            networks=1,
            **self._places,
            **self._constants,
        )
        self._launch(argument, stream)

    def _launch(self, argument: ctypes.Structure, stream: cuda.Stream) -> None:
        self._kernel.launch(argument, stream)

    def close(self) -> None:
        """Unload the kernel; ``memory`` owns the workspace."""
        self._kernel.close()


class LoadedKernel:
    """A compiled kernel of a plan, with room for the shared memory of a block."""

    def __init__(self, device: Device, plan: TinyPlan, source: str) -> None:
        """Compile ``source`` for the plan, or read it from the cache, and load it.

        Raises:
            DeviceError: The shared memory of the plan does not fit on this GPU.
            KernelBuildError: The kernel cannot be compiled.
        """
        self._plan = plan
        self._module, self._function = _load(build(source, device.facts.arch, plan.macros()), plan)

    def launch(self, argument: ctypes.Structure, stream: cuda.Stream, networks: int = 1) -> None:
        """Queue the blocks of ``networks`` networks on ``stream``.

        Raises:
            DeviceError: The driver rejects the launch.
        """
        from cuda.bindings import driver

        plan, pointers = self._plan, (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        shape = (plan.blocks, 1, networks, plan.threads, 1, 1, plan.shared_bytes)
        together = plan.blocks > 1 and not plan.cluster
        launch = driver.cuLaunchCooperativeKernel if together else driver.cuLaunchKernel
        more = () if together else (0,)
        where = driver.CUstream(stream.handle)
        _checked(launch(self._function, *shape, where, ctypes.addressof(pointers), *more))

    def close(self) -> None:
        """Unload the kernel."""
        if self._module is not None:
            from cuda.bindings import driver

            driver.cuModuleUnload(self._module)
            self._module = None


def _load(code: bytes, plan: TinyPlan) -> tuple[Any, Any]:
    """Return the module and its kernel, with room for the shared memory of a block."""
    from cuda.bindings import driver

    (module,) = _checked(driver.cuModuleLoadData(code))
    (kernel,) = _checked(driver.cuModuleGetFunction(module, b"tiny_steps"))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _checked(driver.cuFuncSetAttribute(kernel, attribute, plan.shared_bytes))
    return module, kernel


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *values = answer
    if int(status):
        raise DeviceError(f"tiny kernel: {status}")
    return tuple(values)
