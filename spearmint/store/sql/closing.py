"""Close the connections of all storages when the process ends."""

from __future__ import annotations

import atexit
from weakref import WeakSet

from optuna.storages import RDBStorage

_OPEN: WeakSet[RDBStorage] = WeakSet()


def close_at_exit(storage: RDBStorage) -> None:
    """Close the connections of ``storage`` at the end of the process, if it still exists then.

    SQLite deletes its write-ahead log only when the last connection is closed. The garbage
    collector closes them too, but commands skip its last run, see ``spearmint.cli.main``.
    """
    _OPEN.add(storage)


@atexit.register
def _close_all() -> None:
    for storage in list(_OPEN):
        storage.engine.dispose()
