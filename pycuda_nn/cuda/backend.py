"""The CUDA backend: checks whether a GPU works, and opens it only for a training."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.driver import no_gpu
from pycuda_nn.cuda.stack import DenseStack, NotCovered, recognise
from pycuda_nn.errors import ConfigError
from pycuda_nn.network import Network
from pycuda_nn.protocols import Backend, Session, SessionGroup, Split, TrainingRecipe
from starmint import extra_command

Array = npt.NDArray[Any]

_PACKAGES = {"pycuda": "pycuda", "cuda.bindings": "cuda-bindings", "nvmath": "nvmath-python"}


class CudaBackend(Backend):
    """Trains on one or several NVIDIA GPUs with built-in kernels and cuBLASLt.

    Example:
        >>> import pycuda_nn as nn
        >>> backend = nn.CudaBackend(nn.CudaOptions(precision="bf16"))
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> if nn.CudaBackend.missing() is None:
        ...     result = nn.train(nn.TrainConfig(epochs=5), train, valid, backend=backend)
    """

    name = "cuda"

    def __init__(self, options: CudaOptions | None = None, *, timed: bool = True) -> None:
        """Keep the options; ``timed`` times several GPUs next to one at the start."""
        self._options, self._timed = options or CudaOptions(), timed

    @property
    def saves(self) -> bool:
        """See :class:`Backend`."""
        return self._options.host == 0

    @classmethod
    def has_device(cls) -> bool:
        """See :class:`Backend`."""
        return no_gpu() is None

    @classmethod
    def uncovered(cls, network: Network) -> str | None:
        """See :class:`Backend`."""
        found = recognise(network)
        return found.reason if isinstance(found, NotCovered) else None

    @classmethod
    def missing(cls) -> str | None:
        """See :class:`Backend`."""
        reason = no_gpu()
        if reason is not None:
            return reason
        absent = [package for name, package in _PACKAGES.items() if not _is_there(name)]
        if absent:
            return f"not installed: {', '.join(absent)}; {extra_command('gpu')}"
        return None

    def open(
        self, network: Network, recipe: TrainingRecipe, parts: Mapping[str, Split], params: Array
    ) -> Session:
        """See :class:`Backend`.

        Raises:
            ConfigError: The kernels do not support the network.
        """
        stack = _stack_of(network)
        from pycuda_nn.cuda.runtime.precision import PRECISIONS
        from pycuda_nn.cuda.step.plan import TrainingPlan

        precision = PRECISIONS[self._options.precision]
        plan = TrainingPlan(stack=stack, recipe=recipe, precision=precision)
        if self._options.gpus != 1 or self._options.hosts != 1:
            from pycuda_nn.cuda.parallel.choose import open_session

            return open_session(plan, self._options, parts, params, timed=self._timed)
        from pycuda_nn.cuda.training.session import CudaSession

        return CudaSession(plan, self._options, parts, params)

    def open_many(
        self,
        networks: Sequence[Network],
        recipes: Sequence[TrainingRecipe],
        parts: Mapping[str, Split],
        params: Sequence[Array],
    ) -> SessionGroup:
        """See :class:`Backend`; networks of the same shape share every kernel.

        Raises:
            ConfigError: The kernels do not support a network, or ``gpus`` or ``hosts`` is not 1.
        """
        if len(networks) < 2:
            return super().open_many(networks, recipes, parts, params)
        if self._options.gpus != 1 or self._options.hosts != 1:
            raise ConfigError(
                "several networks at once train on one GPU, not on several",
                "Remove gpus and hosts from the options, or train one network at a time.",
            )
        stacks = [_stack_of(network) for network in networks]
        from pycuda_nn.cuda.many.group import open_group

        return open_group(stacks, recipes, self._options, parts, params)


def _stack_of(network: Network) -> DenseStack:
    stack = recognise(network)
    if isinstance(stack, NotCovered):
        raise ConfigError(
            f"the CUDA backend cannot train this network: {stack.reason}",
            "Use --backend numpy (backend='numpy'), which trains all layers.",
        )
    return stack


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
