"""Cluster plugins for GPU nodes, loaded by dotted name."""
