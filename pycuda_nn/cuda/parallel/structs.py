"""Arguments of the kernels of the exchange, with the same fields as in the .cuh files."""

from __future__ import annotations

import ctypes

from pycuda_nn.cuda.runtime.structs import Update

MOST_RANKS = 16  # MOST of exchange.cuh
FLAGS = 2 * MOST_RANKS  # words of a layer
_Addresses = ctypes.c_uint64 * MOST_RANKS


class Exchange(ctypes.Structure):
    """The exchange of one layer."""

    _fields_ = (
        ("gradients", _Addresses),
        ("weights", _Addresses),
        ("sums", _Addresses),
        ("flags", _Addresses),
        ("bias_next", ctypes.c_uint64),
        ("local", ctypes.c_uint64),
        ("trouble", ctypes.c_uint64),
        ("host", ctypes.c_uint64),
        ("u", Update),
        ("rank", ctypes.c_int),
        ("begin", ctypes.c_int),
        ("end", ctypes.c_int),
        ("limit", ctypes.c_uint),
    )


class Dealt(ctypes.Structure):
    """The gather of rows that are dealt out."""

    _fields_ = (
        ("x", _Addresses),
        ("y", ctypes.c_uint64),
        ("order", ctypes.c_uint64),
        ("clock", ctypes.c_uint64),
        ("to", ctypes.c_uint64),
        ("targets", ctypes.c_uint64),
        ("share", ctypes.c_int64),
        ("j", ctypes.c_int),
        ("batch", ctypes.c_int),
        ("rows", ctypes.c_int),
        ("packs", ctypes.c_int),
        ("words", ctypes.c_int),
    )


def addresses(values: list[int]) -> ctypes.Array[ctypes.c_uint64]:
    """Return one address for each rank, and zeros."""
    return _Addresses(*values)
