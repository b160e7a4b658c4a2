"""Read earlier searches to learn from, also those of other users, without writing to them."""

from __future__ import annotations

from spearmint.store.earlier.sources import earlier_searches, learns_from_regions

__all__ = ["earlier_searches", "learns_from_regions"]
