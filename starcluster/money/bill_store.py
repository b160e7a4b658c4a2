"""The records of bills on this machine: ``~/.starcluster/bill/REGION/CLUSTER/MASTER.json``."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from starcluster.errors import ClusterError
from starcluster.money.observe import merged
from starmint.bill import Bill, BillError, bill_text, read_bill

FOLDER = "~/.starcluster/bill"


class BillStore:
    """The records of all clusters that had the same name in a region.

    Only this user can read them. Several commands can use them at the same time.
    """

    def __init__(self, region: str, cluster: str, folder: Path | None = None) -> None:
        root = folder or Path(FOLDER).expanduser()
        self.folder = root / region / cluster

    def load(self) -> dict[str, Bill]:
        """Return the bills by the instance id of their master.

        Raises:
            ClusterError: A record is damaged.
        """
        found = {}
        for path in sorted(self.folder.glob("*.json")):
            try:
                found[path.stem] = read_bill(path)
            except FileNotFoundError:
                continue
            except BillError as error:
                raise ClusterError(str(error), f"Move it away: mv {path} {path}.old") from error
        return found

    def save(self, life: str, bill: Bill) -> Bill:
        """Add a bill to its record, and return the record."""
        path = self.folder / f"{life}.json"
        with self._locked():
            known = self.load().get(life)
            bill = merged(known, bill) if known else bill
            new = path.with_suffix(".new")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open(new, flags, 0o600), "w") as file:
                file.write(bill_text(bill))
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        return bill

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
