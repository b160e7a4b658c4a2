"""The Redis that carries messages and pieces of files. The only importer of redis."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_CONNECT_S = 5.0
_ANSWER_S = 10.0
_KEPT_S = 7 * 86400  # messages of searches that nobody continues
_PIECE_KEPT_S = 600  # pieces that nobody takes


class StoreDown(OSError):
    """Redis does not answer, or refuses the call; nothing is lost by that."""


class Store:
    """The calls of Redis that are needed here. Each raises StoreDown.

    Args:
        url: ``redis://`` or ``rediss://``, with the password.
        ca: File with the certificates that sign that of the server; empty for the system's.
    """

    def __init__(self, url: str, ca: str = "") -> None:
        import redis

        options: dict[str, Any] = {}
        parts = urlsplit(url)
        # Celery's words for TLS are not those of redis; the certificate is always verified.
        query = [(k, v) for k, v in parse_qsl(parts.query) if not k.startswith("ssl_")]
        url = urlunsplit(parts._replace(query=urlencode(query)))
        if url.startswith("rediss"):
            options = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}
            options |= {"ssl_ca_certs": ca} if ca else {}
        self._errors = (redis.RedisError, OSError)
        self._redis: Any = redis.Redis.from_url(
            url,
            socket_connect_timeout=_CONNECT_S,
            socket_timeout=_ANSWER_S,
            socket_keepalive=True,
            health_check_interval=25,
            **options,
        )

    @contextmanager
    def _calling(self) -> Iterator[Any]:
        try:
            yield self._redis
        except self._errors as error:
            raise StoreDown(f"Redis: {type(error).__name__}: {error}") from None

    def fields(self, key: str) -> dict[str, bytes]:
        """Return all fields of a hash."""
        with self._calling() as redis:
            return {name.decode(errors="replace"): v for name, v in redis.hgetall(key).items()}

    def some(self, key: str, names: Sequence[str]) -> dict[str, bytes]:
        """Return those of the named fields of a hash that exist."""
        with self._calling() as redis:
            found = redis.hmget(key, list(names)) if names else ()
            return {n: value for n, value in zip(names, found, strict=True) if value is not None}

    def write(self, key: str, fields: Mapping[str, str]) -> None:
        """Set fields of a hash."""
        if fields:
            with self._calling() as redis:
                pipe = redis.pipeline(transaction=False)
                pipe.hset(key, mapping=dict(fields))
                pipe.expire(key, _KEPT_S)
                pipe.execute()

    def forget(self, key: str, names: Sequence[str]) -> None:
        """Delete fields of a hash."""
        if names:
            with self._calling() as redis:
                redis.hdel(key, *names)

    def put(self, pieces: Mapping[str, bytes]) -> None:
        """Store pieces, which expire after 10 minutes."""
        if pieces:
            with self._calling() as redis:
                pipe = redis.pipeline(transaction=False)
                for key, data in pieces.items():
                    pipe.set(key, data, ex=_PIECE_KEPT_S)
                pipe.execute()

    def read(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return pieces; None for each that is missing."""
        with self._calling() as redis:
            return list(redis.mget(list(keys))) if keys else []

    def drop(self, keys: Sequence[str]) -> None:
        """Delete pieces, or signals."""
        if keys:
            with self._calling() as redis:
                redis.delete(*keys)

    def notify(self, signals: Mapping[str, str]) -> None:
        """Wake who waits for each signal, with a text. A signal that nobody takes expires."""
        if signals:
            with self._calling() as redis:
                pipe = redis.pipeline(transaction=False)
                for signal, text in signals.items():
                    pipe.rpush(signal, text)
                    pipe.ltrim(signal, -10_000, -1)
                    pipe.expire(signal, _PIECE_KEPT_S)
                pipe.execute()

    def wait(self, signal: str, timeout_s: float) -> set[str]:
        """Return the texts of a signal; empty if none came within ``timeout_s`` seconds."""
        with self._calling() as redis:
            first = redis.blpop([signal], timeout=timeout_s)
            if first is None:
                return set()
            more = redis.lpop(signal, 10_000) or ()
            return {text.decode(errors="replace") for text in (first[1], *more)}

    def bytes_used(self) -> int:
        """Return the bytes of memory that Redis uses."""
        with self._calling() as redis:
            return int(redis.info("memory")["used_memory"])
