"""Benchmarks of ``pycuda-nn bench``; importing this package does not need a GPU."""
