"""Write the reference of the config file from the declarations of the keys."""

from __future__ import annotations

from starcluster.config.keys import ConfigKey
from starcluster.config.schema import SECTIONS


def reference(kind: str) -> str:
    """Return a definition list of the keys of ``[kind]`` as reStructuredText."""
    return "\n".join(_entry(key) for key in SECTIONS[kind].values())


def _entry(key: ConfigKey) -> str:
    facts = ["Required." if key.required else ""]
    if key.unit:
        facts.append(f"Unit: {key.unit}.")
    if key.default_text:
        facts.append(f"Default: ``{key.default_text}``.")
    if key.unset:
        facts.append(f"Default: {key.unset}.")
    facts.append(f"Example: ``{key.example}``.")
    if key.flags:
        flags = ", ".join(f"``{flag}``" for flag in key.flags)
        facts.append(f"Overridden by {flags} of ``start``.")
    text = " ".join([key.help, *filter(None, facts)])
    return f"``{key.name}``\n   {text}\n"
