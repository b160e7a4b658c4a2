"""Decide what to do with a cluster, and say why."""
