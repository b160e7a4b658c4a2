"""Claim GPUs for a job before it starts, and free them when it ends."""
