"""Search from Python: minimize a function, or ask for trials and tell their results."""

from spearmint.search.proposal import Proposal
from spearmint.search.search import Search

__all__ = ["Proposal", "Search"]
