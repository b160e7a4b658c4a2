"""Run torchrun: ``python -P -m spearmint.trial.ranks.torchrun FOLDER N PARENT``.

The store by which the processes find each other listens on 127.0.0.1 only, on a free port: who can
connect to it can run code in the trial. torchrun itself listens on all interfaces.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import sys
from pathlib import Path
from typing import Any

from spearmint.layout import TrialFolder
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.processes import die_with_parent
from spearmint.trial.ranks.records import Records

LOOPBACK = "127.0.0.1"
_PROCESSES = "torch.distributed.elastic.multiprocessing"
_RENDEZVOUS = "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend"


def main(path: str, n: str, parent: str) -> int:
    """Start N processes of the trial in the folder ``path``; return 0 if all exited with 0."""
    die_with_parent(int(parent))
    folder = TrialFolder(Path(path))
    records = Records(folder, Place.here(folder, int(n)))
    try:
        launcher: Any = importlib.import_module("torch.distributed.run")
        local = _listen_on_loopback()
        launcher.main([*_options(n, records, local=local), *_shown(n), *_rank(path)])
    except SystemExit as end:
        return int(bool(end.code))
    except BaseException as error:  # noqa: BLE001 - it is reported
        if type(error).__name__ not in ("ChildFailedError", "SignalException"):
            records.write_launch_failure(f"{type(error).__name__}: {error}".splitlines()[0])
        return 1
    return 0


def _options(n: str, records: Records, *, local: bool) -> list[str]:
    """Return the options of torchrun, as versions since 1.13 spell them."""
    options = ["--standalone", "--nnodes=1", f"--nproc_per_node={n}", "--max_restarts=0"]
    options += ["--monitor_interval=0.1", f"--log_dir={records.path / 'logs'}"]
    return [*options, *([f"--local_addr={LOOPBACK}"] if local else []), "--no_python"]


def _shown(n: str) -> list[str]:
    """Return options that let the output of all processes pass.

    PyTorch 1.13 crashes with its own default, ``0``, on Python 3.11, where the members of a flag no
    longer include its zero. A number of a process that does not exist changes nothing for others.
    """
    with contextlib.suppress(ImportError, AttributeError):
        kinds: Any = importlib.import_module(_PROCESSES).Std
        if kinds.from_str("0") is None:
            return [f"--redirects={n}:3", f"--tee={n}:3"]
    return []


def _rank(path: str) -> list[str]:
    return [sys.executable, "-P", "-u", "-m", "spearmint.trial.ranks.rank", path]


def _listen_on_loopback() -> bool:
    """Bind the stores of torchrun to 127.0.0.1; return whether this version of torch can."""
    with contextlib.suppress(ImportError, AttributeError):
        distributed: Any = importlib.import_module("torch.distributed")
        rendezvous: Any = importlib.import_module(_RENDEZVOUS)
        store = distributed.TCPStore
        if "master_listen_fd" in (store.__init__.__doc__ or ""):
            distributed.TCPStore = rendezvous.TCPStore = _local(store)
            return True
    return False


def _local(store: Any) -> type:
    """Return a class of stores that listen on 127.0.0.1."""

    def init(self: Any, host_name: str, port: int, *more: Any, **named: Any) -> None:
        if named.get("is_master"):
            listening = socket.create_server((LOOPBACK, port))
            host_name, port = listening.getsockname()
            named = {**named, "multi_tenant": False, "master_listen_fd": listening.detach()}
        store.__init__(self, host_name, port, *more, **named)

    return type("TCPStore", (store,), {"__init__": init})


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
