"""Read earlier results from elsewhere as rows, and check which are points of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spearmint.lazy import lazy_names

if TYPE_CHECKING:
    from spearmint.importing.rows import Checked, Point, Row, Table, check
    from spearmint.importing.source import read_source

__all__ = ["Checked", "Point", "Row", "Table", "check", "read_source"]

# A source may be an Optuna study.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Checked", "Point", "Row", "Table", "check"), f"{__name__}.rows"),
        "read_source": f"{__name__}.source",
    },
)
