"""Settings of the command line: a TOML file and ``key=value`` arguments."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pycuda_nn.config import TrainConfig
from pycuda_nn.errors import ConfigError

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_settings(path: Path | None, words: Sequence[str]) -> TrainConfig:
    """Return the settings of the TOML file ``path``; ``key=value`` words override them.

    Raises:
        ConfigError: The file is missing or not TOML, a key is unknown, or a value is invalid.
    """
    values = {} if path is None else _read_toml(path)
    source = "the settings" if path is None else str(path)
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise ConfigError(
                f"invalid --set '{word}': expected KEY=VALUE", "For example: --set lr=0.01"
            )
        values[key.strip()] = parse_value(key.strip(), text.strip())
        source = "the settings"
    return TrainConfig.from_mapping(values, source)


def parse_value(key: str, text: str) -> Any:
    """Return ``text`` in the type of setting ``key``, or unchanged if it cannot be converted."""
    default = _DEFAULTS.get(key, "")
    try:
        if isinstance(default, tuple):
            return tuple(int(width) for width in text.strip("[]()").split(",") if width.strip())
        if isinstance(default, bool):
            return _FLAGS.get(text.lower(), text)
        if default is None:
            return None if text.lower() in ("none", "") else int(text)
        if isinstance(default, int | float):
            return type(default)(text)
    except ValueError:
        return text
    return text


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"--config {path}: no such file", "Check the path.") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path} as TOML: {error}") from error
