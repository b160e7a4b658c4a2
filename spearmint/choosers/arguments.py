"""Arguments of choosers and pruners: convert ``k=v`` text to the declared types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from spearmint.errors import InputError

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_KINDS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def parse_method_args(text: str) -> dict[str, str]:
    """Return the key-value pairs of a text such as ``"mcmc_iters=10,noiseless=1"``.

    Raises:
        InputError: A part is not ``key=value``, or a key is duplicate.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not key or not value:
            raise InputError(
                f"invalid argument {part!r}: expected key=value",
                "Separate several arguments by commas: k=v,k=v.",
            )
        if key in pairs:
            raise InputError(f"duplicate argument {key!r}")
        pairs[key] = value
    return pairs


def convert_args(
    name: str, maker: Callable[..., object], args: Mapping[str, str]
) -> dict[str, Any]:
    """Convert ``args`` to the types that the parameters of ``maker`` declare.

    A parameter without an annotation has the type of its default. ``seed`` is not accepted.

    Args:
        name: Name of ``maker`` in messages.
        maker: Class or function that will be called with the arguments.
        args: The arguments as text.

    Raises:
        InputError: An argument is unknown or missing, or a value has the wrong type.
    """
    parameters = {k: p for k, p in inspect.signature(maker).parameters.items() if k != "seed"}
    kinds = {k: kind for k, p in parameters.items() if (kind := _kind(p))}
    if unknown := [key for key in args if key not in kinds]:
        allowed = f"Its arguments are: {', '.join(kinds)}." if kinds else "It has no arguments."
        raise InputError(f"{name} has no argument {', '.join(unknown)}", allowed)
    if missing := [k for k, p in parameters.items() if _is_required(p) and k not in args]:
        cannot = [k for k in missing if k not in kinds]
        raise InputError(
            f"{name} requires the argument {', '.join(missing)}",
            f"No text can be converted to {', '.join(cannot)}: give it a default value."
            if cannot
            else f"Add: {','.join(f'{k}=VALUE' for k in missing)}",
        )
    return {key: _convert(f"{name}: invalid {key}", kinds[key], v) for key, v in args.items()}


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic


def _kind(parameter: inspect.Parameter) -> type | None:
    """Return the simple type of ``parameter``; None if text cannot be converted to it."""
    declared = parameter.annotation
    if declared is parameter.empty:
        return _KINDS.get(type(parameter.default).__name__)
    text = declared.__name__ if isinstance(declared, type) else str(declared).strip("'")
    text = re.sub(r"^(typing\.)?Optional\[(.*)\]$", r"\2", text)
    names = {word.strip() for word in text.split("|")} - {"None"}
    if names == {"int", "str"}:
        return object  # "auto" or a number
    return _KINDS.get(names.pop()) if len(names) == 1 else None


def _convert(what: str, kind: type, text: str) -> Any:
    """Convert ``text`` to ``kind``; ``what`` is the start of the error message."""
    if kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise InputError(f"{what} {text!r}: expected 0 or 1")
    if kind is object:
        return int(text) if text.lstrip("-").isdigit() else text
    try:
        return kind(text)
    except ValueError as error:
        noun = "an integer" if kind is int else "a number"
        raise InputError(f"{what} {text!r}: expected {noun}") from error
