"""Reference pages of settings, as reStructuredText."""

from __future__ import annotations

import dataclasses
import re

from spearmint.fields import SWITCH, Setting, key_of, keys_of, settings_of

_LITERAL = re.compile(
    r"(?<![\w-])(--?[a-zA-Z][a-z-]*(?:=\w+)?|\$[A-Z_]+|\w+=\w+(?:,\w+=\w+)*"
    r"|package\.module:Class|config\.pb|trace\.csv)"
)


def key_rows(cls: type) -> str:
    """Return an entry for each key of config.pb that ``cls`` declares."""
    rows = []
    for key in keys_of(cls):
        declared = dataclasses.replace(key.setting, help=key.help, repeated=key.repeated)
        text = f"{_text(declared)} ``{declared.flag}`` overrides it."
        rows.append(f"``{key.name}`` : {key.kind.name}\n   {text}")
    return "\n".join(rows) + "\n"


def option_rows(cls: type, group: str) -> str:
    """Return an entry for each option that ``cls`` declares in ``group``."""
    rows = [
        f"{', '.join(f'``{flag}``' for flag in declared.flags)}{_value(declared)}\n"
        f"   {_text(declared)}{_key(declared)}"
        for declared in settings_of(cls)
        if declared.group == group
    ]
    return "\n".join(rows) + "\n"


def option_sections(cls: type, heading: str = "") -> str:
    """Return the options that ``cls`` declares, each group as a section.

    Args:
        cls: A dataclass with settings.
        heading: Title of the settings without a group.
    """
    groups = dict.fromkeys(declared.group for declared in settings_of(cls))
    titles = {group: group or heading for group in groups}
    return "\n".join(
        f"{title}\n{'-' * len(title)}\n\n{option_rows(cls, group)}"
        for group, title in titles.items()
    )


def _key(declared: Setting) -> str:
    key = key_of(declared)
    return f" Key in config.pb: ``{key.name}``." if key else ""


def _value(declared: Setting) -> str:
    if declared.kind is SWITCH:
        return ""
    return f" : {declared.metavar or declared.kind.name}"


def _text(declared: Setting) -> str:
    """Return the help of a setting, with options, keys and variables as literals."""
    return _LITERAL.sub(r"``\1``", declared.sentences(declared.fallback))
