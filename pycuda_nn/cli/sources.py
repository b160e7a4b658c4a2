"""What the commands share: the type of a file option, and the check of a source of rows."""

from __future__ import annotations

from pathlib import Path

import click

from pycuda_nn.data.sources import TABLES
from pycuda_nn.errors import ConfigError

FILE = click.Path(path_type=Path)


def check_source(source: str, labels: Path | None, target: str | None) -> None:
    """Raise ConfigError for an option that this kind of source does not read."""
    kind = Path(source).suffix
    if target is not None and kind not in TABLES:
        raise ConfigError(f"--target: {source} is no table with columns", "Drop --target.")
    if labels is not None and kind != ".npy":
        raise ConfigError(f"--labels: {source} is no .npy file", "Drop --labels.")
