"""Multiply matrices with cuBLASLt or our own kernel, whichever is faster for a shape."""
