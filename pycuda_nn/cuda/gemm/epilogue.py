"""What a built-in product does with its results instead of storing them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from pycuda_nn.cuda.runtime.structs import Activation, SgemmActivation, SgemmUpdate, Update

ACTIVATE, SLOPE, UPDATE = 1, 2, 3  # EPILOGUE of results.cuh
_STRUCTS = {ACTIVATE: SgemmActivation, SLOPE: SgemmActivation, UPDATE: SgemmUpdate}


@dataclass(frozen=True, kw_only=True)
class EpilogueCode:
    """The code of what follows a product.

    Attributes:
        number: ``EPILOGUE`` of results.cuh.
        source: Source that results.cuh needs before it.
        options: Compiler options of the source.
    """

    number: int
    source: str
    options: tuple[str, ...]

    @property
    def argument(self) -> type[ctypes.Structure]:
        """Type of the argument of the kernel."""
        return _STRUCTS[self.number]


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """What follows one product; ``arguments`` are those of the kernel that it replaces."""

    code: EpilogueCode
    arguments: Activation | Update
