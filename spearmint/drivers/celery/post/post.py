"""Whether a search sends files to hosts, and its part of that."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection
from pathlib import Path

from spearmint.drivers.celery.broker import Broker
from spearmint.drivers.celery.post.names import new_search
from spearmint.drivers.celery.post.postman import Postman
from spearmint.drivers.celery.post.store import Store
from spearmint.drivers.celery.records import Records
from spearmint.errors import InputError
from spearmint.layout import Layout
from spearmint.trial.transport.mailroom import Mailroom

_KEY = 'Write key = "any long random text" to the broker file of the search and of all workers.'
_REDIS = 'Write files = "rediss://:PASSWORD@HOST:6379/0" to the broker file of all of them.'


def check_transfer(wanted: str, broker: Broker) -> None:
    """Raise InputError if files must be sent, and cannot be."""
    if wanted != "yes":
        return
    if not broker.key:
        raise InputError("--file-transfer=yes needs a key, which signs what is sent", _KEY)
    if not broker.store:
        raise InputError("RabbitMQ cannot carry files: --file-transfer=yes needs a Redis", _REDIS)


class Post:
    """Sends files to hosts that do not have the directory of the experiment.

    Args:
        broker: The broker.
        experiment: Directory of the experiment.
        wanted: ``yes``, ``no`` or ``auto``: hosts that see the directory use it.

    Attributes:
        is_forced: Whether no host uses the directory itself.
        can_send: Whether files can be sent.
        advice: What the user can do so that files can be sent.
        search: Name of the search for other hosts; empty if nothing is sent.
    """

    def __init__(self, broker: Broker, experiment: Path, wanted: str) -> None:
        self._broker, self._experiment = broker, experiment
        self.is_forced = wanted == "yes"
        self.can_send = wanted != "no" and bool(broker.key and broker.store)
        self.advice = _advice(wanted, broker)
        self._mailroom = Mailroom(Layout(experiment).transfer)
        self._postman: Postman | None = None
        self._stops = threading.Event()
        weakref.finalize(self, self._stops.set)
        self.search = ""

    def start(self) -> None:
        """Answer hosts from now on. Raises OSError."""
        if not self.can_send or (self._postman is not None and self._postman.is_alive()):
            return
        self.search = Records(self._experiment).name_search(new_search())
        store = Store(self._broker.store, self._broker.ca)
        self._postman = Postman(store, self._broker.key, self._experiment, self._stops)
        self._postman.start()

    @property
    def trouble(self) -> str:
        """Why no files can be sent at present; empty if they can."""
        return "" if self._postman is None else self._postman.trouble

    def stop(self) -> None:
        """Answer hosts no longer."""
        self._stops.set()
        if self._postman is not None:
            self._postman.join()

    def receive(self, listed: Collection[str] | None) -> None:
        """Store what has arrived; raises DriverUnreachable if that fails now.

        Args:
            listed: Tokens of the trials whose jobs have not ended; None to delete nothing.
        """
        self._mailroom.receive(listed)


def _advice(wanted: str, broker: Broker) -> str:
    if wanted == "no":
        return "Or rerun with --file-transfer=auto: then files are sent to the workers."
    need = [text for text, is_met in ((_KEY, broker.key), (_REDIS, broker.store)) if not is_met]
    return " ".join(["Workers can also receive files.", *need]) if need else _KEY
