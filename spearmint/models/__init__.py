"""Versions of the final models of a search, and the one that is current."""

from spearmint.models.publishing import complete_folder, switch_link, sync
from spearmint.models.store import ModelStore, Version

__all__ = ["ModelStore", "Version", "complete_folder", "switch_link", "sync"]
