"""Settings as keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from spearmint.errors import InputError, did_you_mean
from spearmint.fields import Setting, settings_of
from spearmint.resources import Resources


def resources_of(given: dict[str, Any]) -> Resources:
    """Return the resources that keyword arguments describe; texts are parsed as in config.pb.

    Raises:
        InputError: A name is unknown, a value is invalid, or a task would have several hosts.
    """
    found = Resources(**values_of(Resources, given, what="resource"))
    if found.nodes > 1:
        what = f"a task cannot run on several hosts (nodes={found.nodes})"
        raise InputError(what, "Leave nodes out: only trials of a search have several hosts.")
    return found


def values_of(
    cls: type, given: Mapping[str, Any], *, what: str, names: Collection[str] = ()
) -> dict[str, Any]:
    """Return the values of settings that keyword arguments give, by attribute.

    Args:
        cls: Dataclass that declares the settings.
        given: Values by the name of the attribute or of the key in config.pb.
        what: What a setting is called in messages.
        names: Settings that can be given; empty for all.

    Raises:
        InputError: A name is unknown, or a value is invalid.
    """
    values: dict[str, Any] = {}
    known = {
        name: declared
        for declared in settings_of(cls)
        for name in {declared.name, declared.key.name if declared.key else ""} - {""}
        if not names or declared.name in names
    }
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise InputError(f"unknown {what} {name!r}", hint)
        declared = known[name]
        try:
            values[declared.name] = _value(declared, value)
        except (TypeError, ValueError) as error:
            raise InputError(f"invalid {what} {name}: {error}") from None
    return values


def _value(declared: Setting, value: Any) -> Any:
    parse = declared.kind.parse
    if declared.repeated:
        return _several(value, parse)
    value = parse(value) if isinstance(value, str) else value
    if declared.minimum is not None and value is not None and value < declared.minimum:
        raise ValueError(f"{value!r} is below {declared.minimum:g}")
    return value


def _several(value: Any, parse: Callable[[Any], Any]) -> tuple[Any, ...]:
    if isinstance(value, dict):
        return tuple(value.items())
    items = [value] if isinstance(value, str) else value
    return tuple(parse(item) if isinstance(item, str) else item for item in items)
