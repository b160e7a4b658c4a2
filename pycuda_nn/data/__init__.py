"""Data: reading it, checking it, splitting it, scaling it."""
