"""Train and compute on NVIDIA GPUs: runtime, matrix products, training step, elementwise maths."""
