"""Arguments of choosers and pruners, from ``k=v`` text to the types they declare."""

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
    """Return the pairs of ``"mcmc_iters=10,noiseless=1"``.

    Raises:
        InputError: A part is not ``key=value``, or a key comes twice.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"method argument {part!r} is not key=value", "Give k=v,k=v.")
        if key in pairs:
            raise InputError(f"method argument {key} is given twice")
        pairs[key] = value
    return pairs


def convert_args(
    name: str, maker: Callable[..., object], args: Mapping[str, str]
) -> dict[str, Any]:
    """Return ``args`` as the types that ``maker``, called ``name``, declares.

    A parameter without annotation has the type of its default. ``seed`` is no argument.

    Raises:
        InputError: An unknown argument, a value of the wrong type, or a missing argument.
    """
    parameters = {k: p for k, p in inspect.signature(maker).parameters.items() if k != "seed"}
    kinds = {k: kind for k, p in parameters.items() if (kind := _kind(p))}
    if unknown := [key for key in args if key not in kinds]:
        allowed = f"It takes: {', '.join(kinds)}." if kinds else "It takes none."
        raise InputError(f"{name} has no argument {', '.join(unknown)}", allowed)
    if missing := [k for k, p in parameters.items() if _is_required(p) and k not in args]:
        cannot = [k for k in missing if k not in kinds]
        raise InputError(
            f"{name} needs the argument {', '.join(missing)}",
            f"Text cannot give {', '.join(cannot)}: let it have a default."
            if cannot
            else f"Give it: {','.join(f'{k}=VALUE' for k in missing)}",
        )
    return {key: _convert(f"{name}: {key}", kinds[key], text) for key, text in args.items()}


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic


def _kind(parameter: inspect.Parameter) -> type | None:
    """Return the simple type of ``parameter``, or None if text cannot give its value."""
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
    """Return ``text`` as ``kind``."""
    if kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise InputError(f"{what} is {text!r}, must be 0 or 1")
    if kind is object:
        return int(text) if text.lstrip("-").isdigit() else text
    try:
        return kind(text)
    except ValueError as error:
        noun = "a whole number" if kind is int else "a number"
        raise InputError(f"{what} is {text!r}, must be {noun}") from error
