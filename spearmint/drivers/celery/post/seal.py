"""Signed messages: who can only write to Redis can neither give a job nor a result."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any


def seal(key: str, context: Sequence[str], content: Mapping[str, Any]) -> str:
    """Return a message with its HMAC-SHA256.

    Args:
        key: Key of controller and workers.
        context: Who says it about what, so that it means nothing elsewhere.
        content: JSON values.
    """
    text = json.dumps(content)
    return json.dumps([_mac(key, context, text), text])


def opened(key: str, context: Sequence[str], sealed: bytes | None) -> dict[str, Any] | None:
    """Return the content of a message; None if it is missing or not signed with this key."""
    try:
        mac, text = json.loads(sealed or b"")
        if not hmac.compare_digest(str(mac).encode(), _mac(key, context, text).encode()):
            return None
        content = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _mac(key: str, context: Sequence[str], text: str) -> str:
    message = json.dumps([*context, text]).encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()
