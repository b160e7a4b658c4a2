"""What instances cost: offers with GPUs, and the bill of a cluster."""

from starcluster.money.bill_store import BillStore
from starcluster.money.offers import Offer, Offers, find_offers
from starcluster.money.rates import Rate, read_rates
from starcluster.money.record import record

__all__ = [
    "BillStore",
    "Offer",
    "Offers",
    "Rate",
    "find_offers",
    "read_rates",
    "record",
]
