"""The command ``pycuda-nn``."""

from pycuda_nn.cli.main import cli, main

__all__ = ["cli", "main"]
