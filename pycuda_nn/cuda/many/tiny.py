"""The tiny kernel of many networks: each trains in blocks of its own, in one launch for all."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pycuda.driver as cuda

from pycuda_nn.cuda.many.plan import ManyPlan
from pycuda_nn.cuda.many.sources import TINY_ENTRY
from pycuda_nn.cuda.many.structs import ManyTiny
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.tiny.kernel import TinyKernel
from pycuda_nn.cuda.tiny.plan import TinyPlan


class ManyTinyKernel(TinyKernel):
    """See :class:`TinyKernel`; trains the networks that :meth:`choose` names, at first all."""

    entry = TINY_ENTRY

    def __init__(
        self,
        device: Device,
        memory: Memory,
        plan: TinyPlan,
        of: ManyPlan,
        *,
        nets: int,
        slots: int,
        steps: int,
    ) -> None:
        """Compile for this network; the context must be active.

        Args:
            device: Device of the active context.
            memory: Allocates the workspace.
            plan: Distribution of the work of each network.
            of: The networks.
            nets: Address of their settings.
            slots: Distance of the orders of two networks.
            steps: Distance of the rates and the losses of two networks.

        Raises:
            DeviceError, KernelBuildError, OutOfDeviceMemory: See :class:`TinyKernel`.
        """
        super().__init__(device, memory, plan, of.recipe)
        self._networks = of.count
        self._fields = {"nets": nets, "slots": slots, "steps": steps}
        self._members = memory.allocate(4 * of.count, "the numbers of the networks")
        self._chosen = of.count
        cuda.memcpy_htod(self._members, np.arange(of.count, dtype=np.int32))

    def choose(self, members: Sequence[int], stream: cuda.Stream) -> None:
        """Train only the networks with these numbers in later launches on ``stream``."""
        self._chosen = len(members)
        cuda.memcpy_htod_async(self._members, np.array(members, dtype=np.int32), stream)

    def _launch(self, argument: ctypes.Structure, stream: cuda.Stream) -> None:
        argument.networks = self._networks
        many = ManyTiny(u=argument, members=self._members, **self._fields)
        self._kernel.launch(many, stream, networks=self._chosen)
