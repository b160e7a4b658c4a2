"""Structs of kernel arguments, with the same fields as in the .cuh files."""

from __future__ import annotations

import ctypes
from typing import Any

MOST_BIASES = 8  # layers in a launch of the kernel ``biases``
_TYPES = {"P": ctypes.c_uint64, "i": ctypes.c_int, "f": ctypes.c_float, "Q": ctypes.c_uint64}


def _struct(name: str, *fields: tuple[Any, str]) -> Any:
    """Return a ctypes structure; each pair is a type, or its key in ``_TYPES``, and field names."""
    pairs = [(field, _TYPES.get(kind, kind)) for kind, names in fields for field in names.split()]
    return type(name, (ctypes.Structure,), {"_fields_": pairs})


Activation = _struct(
    "Activation",
    ("P", "a h z bias partial clock"),
    ("Q", "seed purpose"),
    ("i", "rows packs width share j layer first threshold"),
    ("f", "scale"),
)
DataGrad = _struct("DataGrad", ("P", "maps counter"), (Activation, "u"), ("i", "inputs outputs"))
Head = _struct(
    "Head",
    ("P", "h weight bias y below delta loss partial partial_below"),
    ("i", "rows"),
    ("f", "scale keep"),
)
Update = _struct(
    "Update",
    ("P", "weight master first second grad bias bias_master bias_first bias_second"),
    ("P", "partial loss losses rates clock"),
    ("i", "n outputs parts loss_parts rows j"),
    ("f", "momentum beta2 eps l2 bias_scale"),
)
Sgemm = _struct(
    "Sgemm",
    ("P", "a b d bias"),
    ("i", "m n k"),
    ("f", "alpha beta"),
)
Persistent = _struct(
    "Persistent",
    ("P", "x y order rates params first second losses clock exchange counter profile"),
    ("Q", "seed purpose"),
    ("i", "first_step n_steps threshold"),
    ("f", "scale momentum beta2 eps l2"),
)
Tiny = _struct(
    "Tiny",
    ("P", "x y order rates losses clock params first second partial weights block_losses counter"),
    ("Q", "seed purpose"),
    ("i", "first_step n_steps rows networks network threshold"),
    ("f", "momentum beta2 eps l2 scale"),
)


class SgemmActivation(ctypes.Structure):
    """Arguments of a product with an activation, or its slope."""

    _fields_ = (("p", Sgemm), ("u", Activation))


class SgemmUpdate(ctypes.Structure):
    """Arguments of the product of a gradient of weights, with their update."""

    _fields_ = (("p", Sgemm), ("u", Update))


class Biases(ctypes.Structure):
    """Arguments of the update of the biases of some layers."""

    _fields_ = (("u", Update * MOST_BIASES), ("end", ctypes.c_int * MOST_BIASES))
