"""The version of all five packages."""

__version__ = "0.1.0"
