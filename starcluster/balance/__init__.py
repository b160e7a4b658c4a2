"""Grow and shrink a cluster with its queue."""
