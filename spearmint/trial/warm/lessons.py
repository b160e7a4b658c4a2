"""Modules that the libraries of a trial import while it runs; later trials are forked with them.

For example, the first optimizer of PyTorch in a process imports 800 modules, which takes 0.9 s of
CPU time.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import socket
import sys

from spearmint.trial.warm.files import is_installed

_FEWEST = 20  # fewer modules are not worth another process
_MOST_BYTES = 1 << 18


class Lessons:
    """What trials report to their warm process: names of installed modules.

    Attributes:
        inbox: Readable when a trial has reported.
    """

    def __init__(self) -> None:
        self.inbox, self._outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._outbox.setblocking(False)
        self._known = set(sys.modules)

    def tell(self) -> None:
        """Report the modules that this trial imported, if they are many.

        Only those of packages that the warm process has imported: the user's code names them.
        """
        packages = {name.partition(".")[0] for name in self._known}
        names = [
            name
            for name, module in list(sys.modules.items())
            if name not in self._known
            and name.partition(".")[0] in packages
            and is_installed(getattr(module, "__file__", None))
        ]
        if len(names) >= _FEWEST:
            with contextlib.suppress(OSError):  # the warm process has exited, or is busy
                self._outbox.send(json.dumps(names).encode(), socket.MSG_NOSIGNAL)

    def receive(self) -> list[str]:
        """Return the names of one report that this process has not imported."""
        names = json.loads(self.inbox.recv(_MOST_BYTES))
        return [name for name in names if name not in sys.modules]


def import_all(names: list[str]) -> None:
    """Import modules; ignore those that cannot be imported alone."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
