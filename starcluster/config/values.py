"""Convert sections to values; collect all problems instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from starcluster.config import schema
from starcluster.config.keys import ConfigKey
from starcluster.config.sections import Key, Permission, Plugin
from starcluster.config.syntax import Document, Entry, Problem, Section, Where
from starcluster.config.validate import permission_problems
from starcluster.config.volume import Volume, own_problems
from starcluster.errors import did_you_mean

_CIRCULAR = "extends is circular"


def typed(
    entries: Mapping[str, Entry],
    keys: Mapping[str, ConfigKey],
    problems: list[Problem],
    title: str = "",
) -> dict[str, Any]:
    """Return the values of ``entries`` without the invalid ones.

    A key with an empty value has its default, even if the extended template sets the key.
    """
    values: dict[str, Any] = {}
    for entry in entries.values():
        key = keys.get(entry.key)
        if key is None and entry.key in schema.OBSOLETE:
            continue
        if key is None:
            hint = did_you_mean(entry.key, keys)
            text = f"unknown key '{entry.key}' in [{title}]. {hint}".strip()
            problems.append(Problem(where=entry.where, text=text))
            continue
        if not entry.value and not key.required:
            values[entry.key] = key.default
            continue
        try:
            values[entry.key] = key.parse(entry.value)
        except ValueError as error:
            shown = entry.key if key.hidden else f"{entry.key} = {entry.value}"
            problems.append(Problem(where=entry.where, text=f"{shown}: {error}"))
    return values


def missing(
    section: Section, entries: Mapping[str, Entry], keys: Mapping[str, ConfigKey]
) -> Iterator[Problem]:
    """Yield a problem for each required key that is missing in ``entries``."""
    for name, key in keys.items():
        if key.required and name not in entries:
            text = f"missing key {name} in [{section.kind} {section.name}]"
            yield Problem(where=section.where, text=text)


def kind_problems(document: Document) -> Iterator[Problem]:
    """Yield a problem for each section of unknown kind, or without its name."""
    for section in document.sections.values():
        title = f"{section.kind} {section.name}".strip()
        if section.kind not in schema.SECTIONS:
            hint = did_you_mean(section.kind, schema.SECTIONS)
            text = f"unknown section [{title}]. {hint}".strip()
            yield Problem(where=section.where, text=text)
        elif not section.name and section.kind not in schema.WITHOUT_NAME:
            text = f"missing name in [{title}]; write [{section.kind} NAME]"
            yield Problem(where=section.where, text=text)


def _valid(document: Document, kind: str, problems: list[Problem]) -> dict[str, dict[str, Any]]:
    """Return the values of each section of ``kind`` that has no problem."""
    keys = schema.SECTIONS[kind]
    found: dict[str, dict[str, Any]] = {}
    for name, section in document.of(kind).items():
        wrong: list[Problem] = []
        values = typed(section.entries, keys, wrong, f"{kind} {name}")
        wrong += missing(section, section.entries, keys)
        problems += wrong
        if not wrong:
            found[name] = values
    return found


def keys(document: Document, problems: list[Problem]) -> dict[str, Key]:
    """Return the valid ``[key]`` sections."""
    found = _valid(document, "key", problems)
    return {name: Key(name=name, location=v["key_location"]) for name, v in found.items()}


def volumes(document: Document, problems: list[Problem]) -> dict[str, Volume]:
    """Return the valid ``[volume]`` sections."""
    valid: dict[str, Volume] = {}
    for name, values in _valid(document, "volume", problems).items():
        volume, section = Volume(name=name, **values), document.sections["volume", name]
        given = [key for key, entry in section.entries.items() if entry.value]
        wrong = list(own_problems(volume, given))
        problems += [Problem(where=section.where, text=f"[volume {name}] {text}") for text in wrong]
        if not wrong:
            valid[name] = volume
    return valid


def permissions(document: Document, problems: list[Problem]) -> dict[str, Permission]:
    """Return the valid ``[permission]`` sections."""
    valid: dict[str, Permission] = {}
    for name, values in _valid(document, "permission", problems).items():
        permission = Permission(name=name, **values)
        wrong = list(permission_problems(permission))
        where = document.sections["permission", name].where
        problems += [Problem(where=where, text=f"[permission {name}]: {text}") for text in wrong]
        if not wrong:
            valid[name] = permission
    return valid


def plugins(document: Document, problems: list[Problem]) -> dict[str, Plugin]:
    """Return the valid ``[plugin]`` sections; each key except setup_class is an argument."""
    valid: dict[str, Plugin] = {}
    for name, section in document.of("plugin").items():
        # The case of setup_class does not matter, as for all other keys.
        own = {
            entry.key.lower(): replace(entry, key=entry.key.lower())
            for entry in section.entries.values()
            if entry.key.lower() in schema.PLUGIN
        }
        wrong: list[Problem] = []
        values = typed(own, schema.PLUGIN, wrong, f"plugin {name}")
        wrong += missing(section, own, schema.PLUGIN)
        problems += wrong
        if not wrong:
            arguments = {
                entry.key: entry.value
                for entry in section.entries.values()
                if entry.key.lower() not in own
            }
            valid[name] = Plugin(name=name, arguments=arguments, **values)
    return valid


def inherited(document: Document, name: str, problems: list[Problem]) -> dict[str, Entry]:
    """Return the entries of a template, including those of the templates that it extends."""
    clusters = document.of("cluster")
    chain, layers = [name], [clusters[name].entries]
    while parent := layers[-1].get("extends"):
        if parent.value in chain:
            text = f"{_CIRCULAR}: {' -> '.join([*chain, parent.value])}"
            problems.append(Problem(where=parent.where, text=text))
            break
        if parent.value not in clusters:
            text = f"extends = {parent.value}: no section [cluster {parent.value}]."
            text = f"{text} {did_you_mean(parent.value, clusters)}".strip()
            problems.append(Problem(where=parent.where, text=text))
            break
        chain.append(parent.value)
        layers.append(clusters[parent.value].entries)
    merged: dict[str, Entry] = {}
    for layer in reversed(layers):
        merged |= layer
    merged.pop("extends", None)
    return merged


def cluster_problems(document: Document) -> Iterator[Problem]:
    """Yield the problems of the ``[cluster]`` sections, each one once."""
    extended = {
        section.entries["extends"].value
        for section in document.of("cluster").values()
        if "extends" in section.entries
    }
    seen: set[str] = set()
    for name, section in document.of("cluster").items():
        found: list[Problem] = []
        values = typed(section.entries, schema.CLUSTER, found, f"cluster {name}")
        found += reference_problems(document, values, section.entries)
        entries = inherited(document, name, found)
        if name not in extended:
            # A template that others extend does not have to be complete.
            found += missing(section, entries, schema.CLUSTER)
        for problem in found:
            # Each template of a circle reports it in another order: keep one report per line.
            circular = problem.text.startswith(_CIRCULAR)
            same = str(problem.where) if circular else str(problem)
            if same not in seen:
                seen.add(same)
                yield problem


def reference_problems(
    document: Document, values: Mapping[str, Any], entries: Mapping[str, Entry]
) -> Iterator[Problem]:
    """Yield a problem for each missing section that a key names."""
    for key in schema.CLUSTER.values():
        if not key.refers_to or key.name not in values:
            continue
        if key.refers_to == "key" and "key_location" in entries:
            continue
        known = document.of(key.refers_to)
        value = values[key.name]
        for name in (value,) if isinstance(value, str) else value:
            if name not in known:
                hint = did_you_mean(name, known)
                text = f"{key.name}: no section [{key.refers_to} {name}]. {hint}".strip()
                yield Problem(where=entries[key.name].where, text=text)


def given(overrides: Mapping[str, str]) -> dict[str, Entry]:
    """Return options of the command line as entries."""
    return {
        key: Entry(key=key, value=value, where=Where(other="command line"))
        for key, value in overrides.items()
    }
