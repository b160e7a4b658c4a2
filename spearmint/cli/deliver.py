"""Bring requests to the running controller, or apply them if none runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from spearmint.config.reader import load_experiment
from spearmint.controller.direct import apply_requests
from spearmint.errors import AlreadyRunning, SpearmintError
from spearmint.layout import Layout
from spearmint.requests.inbox import Inbox, Request
from spearmint.store.lock import holder_of
from spearmint.store.owner import read_ownership
from spearmint.store.session import known_regions, run_sessions

_TIMEOUT_S = 30.0
_STEP_S = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """What happened to requests.

    Attributes:
        is_applied: Whether all are applied; otherwise the next controller applies them.
        by_controller: Whether a controller runs.
        notes: Messages of the driver.
    """

    is_applied: bool
    by_controller: bool
    notes: tuple[str, ...] = ()


def deliver(config: Path, storage: str | None, requests: Sequence[Request]) -> Delivery:
    """Store requests, and wait at most 30 s until they are applied.

    A controller applies them within a second. If none runs, this process does.

    Raises:
        SpearmintError: A driver or the storage cannot be used; the requests stay.
    """
    experiment = known_regions(load_experiment(config))
    layout = Layout(experiment.directory)
    inbox = Inbox(layout)
    for request in requests:
        inbox.put(request)
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        runs = holder_of(layout) is not None
        if not any(map(inbox.has, requests)):
            return Delivery(is_applied=True, by_controller=runs)
        if not runs:
            try:
                return Delivery(True, False, tuple(_apply(config, storage)))
            except AlreadyRunning:
                continue
            except SpearmintError as error:
                error.fix = f"{error.fix}\nThe request stays, and the next run applies it.".strip()
                raise
        if time.monotonic() > deadline:
            return Delivery(is_applied=False, by_controller=True)
        time.sleep(_STEP_S)


def _apply(config: Path, storage: str | None) -> list[str]:
    """Apply all requests in this process, under the lock of the search."""
    experiment = known_regions(load_experiment(config))
    known = read_ownership(Layout(experiment.directory))
    driver = known.driver if known is not None else "local"
    with run_sessions(experiment, storage, driver=driver) as sessions:
        return apply_requests(sessions, driver)


def later(delivery: Delivery) -> str:
    """Return the sentence about requests that are not applied yet; empty if all are."""
    if delivery.is_applied:
        return ""
    return "The running process has not applied the request yet. It stays until one does."
