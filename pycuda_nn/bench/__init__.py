"""What ``pycuda-nn bench`` measures; importing it needs no GPU."""
