"""Settings of the command line: a TOML file and ``key=value`` arguments."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pycuda_nn.config import TrainConfig
from pycuda_nn.data.split import Splits
from pycuda_nn.errors import ConfigError
from pycuda_nn.training import checkpoint as files

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
_CHOSEN = ("batch_size", "l2", "epochs", "patience", "scale_targets")
_SMALL_ROWS = 10_000
_STEPS = 2_000
_MOST_STEPS = 200_000
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_settings(path: Path | None, words: Sequence[str]) -> tuple[TrainConfig, set[str]]:
    """Return the settings of the TOML file ``path`` and the keys that were given.

    ``key=value`` words override the file.

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
    return TrainConfig.from_mapping(values, source), set(values)


def defaults_for(config: TrainConfig, parts: Splits, given: Collection[str]) -> dict[str, Any]:
    """Return the settings that the command chooses for the data, without the ``given`` keys.

    A regression scales its targets. If neither ``epochs`` nor ``patience`` is given, a table is
    trained in small minibatches with an L2 that falls with the number of rows: classes for about
    2,000 steps, because their error still falls when their validation loss no longer does; numbers
    until the validation loss has not improved for 20 epochs.
    """
    values: dict[str, Any] = {}
    regression = parts.train.classes is None
    if regression:
        values["scale_targets"] = "standard"
    if parts.train.encoding is not None and not {"epochs", "patience"} & set(given):
        rows = len(parts.train)
        size = 32 if rows <= _SMALL_ROWS and "batch_size" not in given else config.batch_size
        values["batch_size"] = size
        values["l2"] = min(0.01, 10 / rows)
        stops = regression and len(parts.valid) > 0
        steps = _MOST_STEPS if stops else _STEPS
        values["epochs"] = min(400, max(20, -(-steps // -(-rows // size))))
        if stops:
            values["patience"] = 20
    return {key: value for key, value in values.items() if key not in given}


def settings_of(path: Path, given: Collection[str]) -> dict[str, Any]:
    """Return the settings of a checkpoint that depend on the data, without the ``given`` keys."""
    saved = files.load(path).config
    return {key: getattr(saved, key) for key in _CHOSEN if key not in given}


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
