"""Texts that plugins for the original import: ``from starcluster.templates import sge``."""

from starcluster.templates import sge

__all__ = ["sge"]
