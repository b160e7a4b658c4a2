"""The files of requests: commands write them, and the holder of the search's lock reads them."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from spearmint.layout import Layout, read_json, write_json

_SUFFIX = ".json"


class Action(StrEnum):
    """What a request asks for."""

    ADD = "add"
    RETRY = "retry"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A change of one study.

    Attributes:
        action: What to do.
        region: Region of the study; empty without regions.
        trials: Numbers of trials to retry or to stop.
        points: Points to queue, by element name; each can omit variables.
        repeat: Whether to queue points that were tried before.
        reason: Why trials are stopped, in one line.
        id: Unique name, which begins with the time, so that requests have an order.
    """

    action: Action
    region: str = ""
    trials: tuple[int, ...] = ()
    points: tuple[Mapping[str, Any], ...] = ()
    repeat: bool = False
    reason: str = ""
    id: str = field(default_factory=lambda: f"{time.time_ns():020d}-{uuid.uuid4().hex}")


class Inbox:
    """The directory of requests that are not applied yet, in the order of their ids.

    A request is deleted after its effect is stored. Only the holder of the search's lock applies
    requests, so each is applied once.
    """

    def __init__(self, layout: Layout) -> None:
        self._folder = layout.requests

    def put(self, request: Request) -> None:
        """Store a request, which survives a power failure."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_json(self._path(request.id), asdict(request), durable=True)

    def names(self) -> list[str]:
        """Return the ids of all requests, the oldest first."""
        try:
            found = [path.name for path in self._folder.iterdir()]
        except OSError:
            return []
        return sorted(
            name.removesuffix(_SUFFIX)
            for name in found
            if name.endswith(_SUFFIX) and not name.startswith(".")
        )

    def read(self, request_id: str) -> Request | None:
        """Return a request; None if it was applied, or is not valid."""
        path = self._path(request_id)
        with contextlib.suppress(OSError, RecursionError):
            if path.is_file():  # a pipe would never end
                return _parsed(read_json(path), request_id)
        return None

    def has(self, request: Request) -> bool:
        """Return whether a request is not applied yet."""
        return self._path(request.id).exists()

    def remove(self, request_id: str) -> None:
        """Delete a request, whose effect is stored."""
        self._path(request_id).unlink(missing_ok=True)

    def reject(self, request_id: str) -> Path:
        """Rename a request that is not valid, and return the new path."""
        path = self._path(request_id)
        bad = path.with_suffix(".invalid")
        with contextlib.suppress(FileNotFoundError):
            path.replace(bad)
        return bad

    def _path(self, request_id: str) -> Path:
        return self._folder / f"{request_id}{_SUFFIX}"


def _parsed(content: Mapping[str, Any] | None, request_id: str) -> Request | None:
    try:
        if content is None or content["id"] != request_id:
            return None
        numbers: Sequence[Any] = content["trials"]
        points: Sequence[Any] = content["points"]
        return Request(
            action=Action(content["action"]),
            region=str(content["region"]),
            trials=tuple(int(number) for number in numbers),
            points=tuple(map(_point, points)),
            repeat=bool(content["repeat"]),
            reason=str(content["reason"]),
            id=request_id,
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _point(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a point. Raises TypeError and ValueError if it is not one."""
    point = dict(content)
    if not all(type(value) in (int, float, str) for value in point.values()):
        raise TypeError("the values of a point are numbers and texts")
    return point
