"""A stand-in for PyTorch in tests: its launcher, and one collective operation."""
