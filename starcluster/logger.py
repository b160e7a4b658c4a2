"""The log of plugins: ``from starcluster.logger import log``."""

from __future__ import annotations

import logging
import re

log = logging.getLogger("starcluster")

_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(
        r"(?i)(?<=[a-z_-])?(?:password|passwd|secret|token|secret_access_key)(?:\s*[=:]\s*|\s+)"
        r"(?P<value>'[^']*'|\"[^\"]*\"|[^\s;&|]+)"
    ),
)
_SHOWN = 500


def redact(text: str, *, limit: int = _SHOWN) -> str:
    """Return ``text`` for a log: without keys, tokens and passwords, and shortened."""
    for pattern in _SECRETS:
        text = pattern.sub(_hidden, text)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _hidden(match: re.Match[str]) -> str:
    value = match.groupdict().get("value")
    return match[0][: -len(value)] + "***" if value else "***"
