"""Options that several commands share: their types, help texts and checks."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from pycuda_nn.data.sources import TABLES
from pycuda_nn.errors import ConfigError

FILE = click.Path(path_type=Path)


class HelpOption(cloup.Option):
    """An option whose help text itself names the default and whether a value is required."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the flags and the help text, without the marks that click appends."""
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], self.help or "")


JSON = cloup.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
LABELS = cloup.option(
    "--labels", cls=HelpOption, type=FILE, metavar="FILE",
    help="Read the labels of a .npy source from this .npy file. Default: none.",
)  # fmt: skip


def check_source(source: str, labels: Path | None, target: str | None) -> None:
    """Raise ConfigError for an option that this kind of source does not read."""
    kind = Path(source).suffix
    if target is not None and kind not in TABLES:
        raise ConfigError(f"--target: {source} is not a table with columns", "Remove --target.")
    if labels is not None and kind != ".npy":
        raise ConfigError(f"--labels: {source} is not a .npy file", "Remove --labels.")
