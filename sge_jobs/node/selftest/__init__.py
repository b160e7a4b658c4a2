"""Test the GPUs of a host with kernels whose results are known."""
