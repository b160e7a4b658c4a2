"""A store in memory, with the calls of Redis that controller and hosts use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spearmint.drivers.celery.post.store import Store, StoreDown


class MemoryStore(Store):
    """Keeps hashes, pieces and signals.

    Attributes:
        is_down: Whether each call fails.
        pieces: The pieces by their names.
        most: The most bytes of pieces at the same time.
    """

    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, bytes]] = {}
        self.pieces: dict[str, bytes] = {}
        self.signals: dict[str, list[str]] = {}
        self.is_down, self.most = False, 0

    def _check(self) -> None:
        if self.is_down:
            raise StoreDown("down")

    def fields(self, key: str) -> dict[str, bytes]:
        self._check()
        return dict(self.hashes.get(key, {}))

    def some(self, key: str, names: Sequence[str]) -> dict[str, bytes]:
        return {name: value for name, value in self.fields(key).items() if name in names}

    def write(self, key: str, fields: Mapping[str, str]) -> None:
        self._check()
        self.hashes.setdefault(key, {}).update({k: v.encode() for k, v in fields.items()})

    def forget(self, key: str, names: Sequence[str]) -> None:
        self._check()
        for name in names:
            self.hashes.get(key, {}).pop(name, None)

    def put(self, pieces: Mapping[str, bytes]) -> None:
        self._check()
        self.pieces.update(pieces)
        self.most = max(self.most, sum(map(len, self.pieces.values())))

    def read(self, keys: Sequence[str]) -> list[bytes | None]:
        self._check()
        return [self.pieces.get(key) for key in keys]

    def drop(self, keys: Sequence[str]) -> None:
        self._check()
        for key in keys:
            self.pieces.pop(key, None)

    def notify(self, signals: Mapping[str, str]) -> None:
        self._check()
        for signal, text in signals.items():
            self.signals.setdefault(signal, []).append(text)

    def wait(self, signal: str, timeout_s: float) -> set[str]:
        self._check()
        return set(self.signals.pop(signal, ()))
