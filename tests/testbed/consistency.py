"""Eventual consistency of the fake EC2: lists that lag, slow calls, and lost responses.

``HostlessCloud.rules`` writes ``faults/consistency``, a JSON object that can change at any time:

``seed``: of all choices. ``lag_s``: seconds, from and to, until a list has a change; chosen for
each resource. ``flicker``: share of the requests within that time that have it nevertheless, so
that a resource is listed and then not. ``slow_s``: seconds before a call has its effect, by action
(``*`` for all). ``lost``: share of the calls whose response is lost after they took effect, by
action. ``throttled``: share of the calls that are refused because there are too many, by action.
``reclaim_s``: seconds, from and to, until AWS terminates every second spot instance. A client whose
user agent has ``TRUTH`` in it sees everything at once.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from flask import request
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instances import Instance, InstanceState

from tests.testbed.faults import TRUTH

_FIRST = "first"  # the key of a resource's creation


class Consistency:
    """What each call sees, and when; the same for the same seed and the same order of calls."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "faults" / "consistency"
        self._changes: dict[tuple[str, str], float] = {}
        self._before: dict[str, tuple[str, int]] = {}  # state before the last change
        self._tags: dict[str, list[dict[str, str]]] = {}  # tags before the last change
        self._numbers: dict[str, int] = {}  # of resources, in order of their creation
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._now = threading.local()

    def settings(self) -> dict[str, Any]:
        """Return what the test has requested."""
        try:
            found: dict[str, Any] = json.loads(self._path.read_text())
        except OSError:
            return {}
        return found

    # Calls

    def before(self, action: str, agent: str) -> None:
        """Wait as long as the call is slow; choose whether its response will be lost."""
        truth = TRUTH in agent
        self._now.rules = rules = {} if truth else self.settings()
        with self._lock:
            self._calls[action] += 1
            number = self._calls[action]
        choice = self._random(action, number)
        self._now.choice = choice
        low, high = _of(rules.get("slow_s"), action, (0.0, 0.0))
        time.sleep(choice.uniform(low, high))
        self._now.lost = choice.random() < _of(rules.get("lost"), action, 0.0)
        self._now.throttled = choice.random() < _of(rules.get("throttled"), action, 0.0)

    @property
    def throttles(self) -> bool:
        """Whether AWS refuses the current call because there are too many."""
        return bool(self._now.throttled)

    def after(self) -> None:
        """Cut the connection of a call whose response is lost."""
        if self._now.lost:
            cut()

    # Resources

    def changed(self, id: str, key: str = _FIRST) -> None:
        """Note the time of a change of a resource."""
        with self._lock:
            self._changes[id, key] = time.monotonic()
            self._numbers.setdefault(id, len(self._numbers))

    def state_changes(self, instance: Any) -> None:
        """Note that the state of an instance is about to change."""
        self._before[instance.id] = (instance.state, instance.state_code)
        self.changed(instance.id, "state")

    def tags_change(self, id: str, tags: list[dict[str, str]]) -> None:
        """Note that ``tags`` of a resource are about to change."""
        self._tags[id] = tags
        self.changed(id, "tags")

    def old_tags(self, id: str) -> list[dict[str, str]] | None:
        """Return the tags that this call's list has; None for the current ones."""
        return None if self.lists(id, "tags") else self._tags.get(id)

    def lists(self, id: str, key: str = _FIRST) -> bool:
        """Return whether this call's list has a change of a resource."""
        rules = getattr(self._now, "rules", {})
        changed = self._changes.get((id, key))
        if not rules.get("lag_s") or changed is None:
            return True
        lag = self._random(f"{key} {self._numbers[id]}", 0).uniform(*rules["lag_s"])
        if time.monotonic() - changed > lag:
            return True
        return bool(self._now.choice.random() < rules.get("flicker", 0.0))

    def reclaims(self) -> float:
        """Return the seconds until AWS terminates a new spot instance; 0 for never."""
        low, high = self.settings().get("reclaim_s", (0.0, 0.0))
        return (
            float(self._now.choice.uniform(low, high)) if self._now.choice.random() < 0.5 else 0.0
        )

    def require(self, ids: list[str], code: str) -> None:
        """Raise the error ``code`` of EC2 for a resource that this call does not know yet."""
        for id in ids:
            if not self.lists(id):
                raise EC2ClientError(code, f"The ID '{id}' does not exist")

    def view(self, reservations: list[Any]) -> list[Any]:
        """Return what this call sees of reservations."""
        found = []
        for reservation in reservations:
            seen = [self._seen(each) for each in reservation.instances if self.lists(each.id)]
            if seen:
                reservation.instances = seen
                found.append(reservation)
        return found

    def _seen(self, instance: Any) -> Any:
        tags = self.lists(instance.id, "tags")
        state = self.lists(instance.id, "state")
        if tags and state:
            return instance
        return Shadow.of(instance, None if state else self._before.get(instance.id), tags=tags)

    def _random(self, key: str, number: int) -> random.Random:
        return random.Random(f"{self.settings().get('seed', 0)} {key} {number}")


class Shadow(Instance):
    """An instance with an earlier state, or without its tags."""

    @classmethod
    def of(cls, real: Any, state: tuple[str, int] | None, *, tags: bool) -> Shadow:
        """Return the shadow of an instance."""
        made = cls.__new__(cls)
        made._real, made._tags = real, tags
        if state is not None:
            made._state = InstanceState(*state)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_real"], name)

    def __del__(self) -> None:
        """Keep the addresses of the real instance."""

    def get_tags(self) -> list[dict[str, str]]:
        """Return the tags, if they are listed."""
        return self._real.get_tags() if self._tags else []


def cut() -> None:
    """Close the connection of the current request without a response."""
    connection = request.environ.get("werkzeug.socket")
    if connection is not None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _of(rules: Any, action: str, otherwise: Any) -> Any:
    if isinstance(rules, dict):
        return rules.get(action, rules.get("*", otherwise))
    return otherwise if rules is None else rules
