"""A stand-in for PyTorch in tests: its launcher, and one collective operation."""

import os

if "NO_LIBCUDA" in os.environ:
    raise ImportError("libcuda.so.1: cannot open shared object file")
