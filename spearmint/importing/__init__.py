"""Read results from other sources as rows, and check which rows fit a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.importing.rows import Checked, Point, Row, Table, check
    from spearmint.importing.source import read_source

__all__ = ["Checked", "Point", "Row", "Table", "check", "read_source"]

# Loaded on first use: a source can be an Optuna study, and importing Optuna takes long.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Checked", "Point", "Row", "Table", "check"), f"{__name__}.rows"),
        "read_source": f"{__name__}.source",
    },
)
