"""Test the GPUs of a host by running known kernels on them."""
