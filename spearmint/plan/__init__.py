"""Plan a search by a deadline and a budget: how many nodes of which type, and how many trials."""

from spearmint.plan.deadline import parse_deadline
from spearmint.plan.durations import GuessedDurations, LearnedDurations, parse_range
from spearmint.plan.lessons import worth
from spearmint.plan.offers import NodeOffer, parse_price
from spearmint.plan.planner import Planner, Row, Wanted

__all__ = [
    "GuessedDurations",
    "LearnedDurations",
    "NodeOffer",
    "Planner",
    "Row",
    "Wanted",
    "parse_deadline",
    "parse_price",
    "parse_range",
    "worth",
]
