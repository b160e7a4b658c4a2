"""Where the broker is: its URL, and the key that signs messages."""

from __future__ import annotations

import getpass
import os
import re
import ssl
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spearmint.errors import InputError

URL, FILE, KEY = "SPEARMINT_BROKER_URL", "SPEARMINT_BROKER_FILE", "SPEARMINT_BROKER_KEY"
"""Environment variables: the URL, a file with url and key, and the key."""

DEFAULT_FILE = Path("~/.config/spearmint/broker.toml")
_SCHEMES = ("redis", "rediss", "amqp", "amqps", "pyamqp")
_REDIS = ("redis", "rediss")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of Celery.

    Attributes:
        url: The URL with its password.
        key: Key of signatures; empty for none.
        ca: File with the certificates that sign that of a TLS broker; empty for the system's.
        files: URL of another Redis for the files of hosts that do not share them; can be empty.
    """

    url: str = field(repr=False)
    key: str = field(default="", repr=False)
    ca: str = ""
    files: str = field(default="", repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or 'localhost'}{port}{parts.path}"

    @property
    def is_redis(self) -> bool:
        """Whether it is Redis; otherwise RabbitMQ."""
        return self.url.startswith("redis")

    @property
    def store(self) -> str:
        """URL of the Redis that can carry files; empty for none."""
        return self.files or (self.url if self.is_redis else "")

    def tls(self) -> Mapping[str, Any] | None:
        """Return the settings of a verified TLS connection; None without TLS."""
        parts, ca = urlsplit(self.url), self.ca or None
        if parts.scheme == "rediss":
            found: dict[str, Any] = {"ssl_cert_reqs": ssl.CERT_REQUIRED}
            return found | ({"ssl_ca_certs": ca} if ca else {})
        if parts.scheme == "amqps":
            host = parts.hostname or "localhost"
            return {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": ca, "server_hostname": host}
        return None


def find_broker(named: str = "") -> Broker:
    """Return the broker: the named one, or else that of the environment or of the default file.

    Args:
        named: A URL, or a file with ``url = "..."`` and optionally ``key``, ``ca`` and ``files``.

    Raises:
        InputError: There is none, the URL is invalid, or other users can read the file.
    """
    url = named if "://" in named else ""
    file = named if named and not url else ""
    if not named:
        url, file = os.environ.get(URL, ""), os.environ.get(FILE, "")
    path = Path(file) if file else DEFAULT_FILE.expanduser()
    content = _read(path) if file or path.exists() else {}
    url = url or content.get("url", "")
    if not url:
        raise InputError(
            "no broker is named",
            f'Set {URL}, or write url = "redis://:PASSWORD@HOST:6379/0" to {path} and run '
            f"chmod 600 {path}",
        )
    _check(url, _SCHEMES)
    if files := content.get("files", ""):
        _check(files, _REDIS)
    key = os.environ.get(KEY, "") or content.get("key", "")
    return Broker(url, key, content.get("ca", ""), files)


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise InputError(
                    f"other users can read or replace {path}, which holds the broker's password",
                    f"chmod 600 {path}",
                )
            content = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not TOML"
        raise InputError(f"cannot read {path}: {reason}") from None
    unknown = sorted(set(content) - {"url", "key", "ca", "files"})
    if unknown or not all(isinstance(value, str) for value in content.values()):
        raise InputError(f"{path} can contain url, key, ca and files, as texts; not: {unknown}")
    return content


def _check(url: str, schemes: Collection[str]) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InputError("the URL of the broker is invalid", _EXAMPLE) from None
    if parts.scheme not in schemes:
        raise InputError(f"unknown broker {parts.scheme}://", _EXAMPLE)


_EXAMPLE = "Expected redis://, rediss://, amqp:// or amqps://, such as redis://localhost:6379/0"


def queue_name(name: str) -> str:
    """Return the name of a queue: ``name``, or for an empty one the queue of this user.

    Raises:
        InputError: The name has other characters than letters, digits, dots and hyphens.
    """
    name = name or f"spearmint.{getpass.getuser()}"
    if not _NAME.fullmatch(name):
        raise InputError(f"invalid name of a queue: {name!r}", "Use letters, digits, . - and _.")
    return name
