"""The bill of a cluster: when its nodes ran and at which prices. ``starcluster`` writes it."""

from starmint.bill.charge import Charge, Ledger
from starmint.bill.files import PUBLISHED, BillError, bill_from_text, bill_text, read_bill
from starmint.bill.model import Bill, NodeRun, Price

__all__ = [
    "PUBLISHED",
    "Bill",
    "BillError",
    "Charge",
    "Ledger",
    "NodeRun",
    "Price",
    "bill_from_text",
    "bill_text",
    "read_bill",
]
