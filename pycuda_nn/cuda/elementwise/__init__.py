"""Compile a numpy-like expression into one CUDA kernel and run it."""
