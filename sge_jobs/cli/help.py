"""The start of each command's options."""

from __future__ import annotations

import argparse


def first_group(parser: argparse.ArgumentParser, title: str = "Options") -> argparse._ArgumentGroup:
    """Return a new group of options, which starts with ``--help``."""
    group = parser.add_argument_group(title)
    group.add_argument("-h", "--help", action="help", help="Show this help and exit.")
    return group
