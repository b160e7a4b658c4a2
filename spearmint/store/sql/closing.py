"""Close the connections of all storages when the process ends."""

from __future__ import annotations

import atexit
import os
from weakref import WeakKeyDictionary

from optuna.storages import RDBStorage

_OPEN: WeakKeyDictionary[RDBStorage, int] = WeakKeyDictionary()  # processes that opened them


def close_at_exit(storage: RDBStorage) -> None:
    """Close the connections of ``storage`` at the end of the process, if it still exists then.

    SQLite deletes its write-ahead log only when the last connection is closed. The garbage
    collector closes them too, but commands skip its last run, see ``spearmint.cli.main``.
    """
    _OPEN[storage] = os.getpid()


@atexit.register
def _close_all() -> None:
    for storage, process in list(_OPEN.items()):
        if process == os.getpid():  # a forked process has copies of the connections
            storage.engine.dispose()
