"""What instances cost: offers with GPUs and their prices."""

from starcluster.money.offers import Offer, Offers, find_offers
from starcluster.money.rates import Rate, read_rates

__all__ = ["Offer", "Offers", "Rate", "find_offers", "read_rates"]
