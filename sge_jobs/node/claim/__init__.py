"""Claim GPUs for a job before it starts, and release them when it ends."""
