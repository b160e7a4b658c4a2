"""Read the keys that settings declare: those of RunOptions and the block ``resources``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from google.protobuf.message import Message

from spearmint.errors import ConfigError
from spearmint.fields import ConfigKey, keys_of


class MakeError(Protocol):
    """Returns an error at a field of the file."""

    def __call__(self, what: str, fix: str, *at: str | int) -> ConfigError:
        """Return the error; ``at`` is the path of the field."""


def read_values(
    message: Message, cls: type, directory: Path, error: MakeError, *block: str | int
) -> dict[str, Any]:
    """Return the values of the keys of ``cls`` in ``message``, by attribute.

    Args:
        message: The file, or a block of it.
        cls: Dataclass whose settings declare the keys.
        directory: Base of relative paths.
        error: Returns an error at a field.
        block: Path of ``message`` in the file; empty for the file.

    Raises:
        ConfigError: A value is invalid.
    """
    values: dict[str, Any] = {}
    for key in keys_of(cls):
        held = getattr(message, key.name)
        held = list(held) if key.repeated else [held] if message.HasField(key.name) else []
        read = [
            _read(value, key, directory, error, (*block, key.name, i))
            for i, value in enumerate(held)
            if key.repeated or value != ""
        ]
        if read:
            values[key.sets] = tuple(read) if key.repeated else read[0]
    return values


def _read(
    value: Any, key: ConfigKey, directory: Path, error: MakeError, at: tuple[str | int, ...]
) -> Any:
    minimum = key.setting.minimum
    try:
        parsed = key.kind.parse(value)
    except ValueError as problem:
        fix = f"Write, for example: {key.name}: {key.kind.example}"
        raise error(f"{key.name}: {problem}", fix, *at) from None
    if minimum is not None and parsed < minimum:
        fix = f"Write a number of at least {minimum:g}."
        raise error(f"{key.name}: {parsed} is too small", fix, *at)
    return directory / parsed.expanduser() if isinstance(parsed, Path) else parsed
