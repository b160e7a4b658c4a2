"""Sections of lines become values; every problem is noted and the rest is read on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from starcluster.config import schema
from starcluster.config.keys import ConfigKey
from starcluster.config.sections import Key, Permission, Plugin, Volume
from starcluster.config.syntax import Document, Entry, Problem, Section, Where
from starcluster.config.validate import permission_problems
from starcluster.errors import did_you_mean


def typed(
    entries: Mapping[str, Entry],
    keys: Mapping[str, ConfigKey],
    problems: list[Problem],
    title: str = "",
) -> dict[str, Any]:
    """Return the values of ``entries``; those that are wrong are left out.

    A key without a value has its default, also where the template it extends has a value.
    """
    values: dict[str, Any] = {}
    for entry in entries.values():
        key = keys.get(entry.key)
        if key is None and entry.key in schema.OBSOLETE:
            continue
        if key is None:
            text = f"[{title}] has no key '{entry.key}'. {did_you_mean(entry.key, keys)}".strip()
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
    """Yield a problem for each required key that ``entries`` has not."""
    for name, key in keys.items():
        if key.required and name not in entries:
            text = f"[{section.kind} {section.name}] needs {name}"
            yield Problem(where=section.where, text=text)


def kind_problems(document: Document) -> Iterator[Problem]:
    """Yield a problem for each section of a kind there is not, or without its name."""
    for section in document.sections.values():
        title = f"{section.kind} {section.name}".strip()
        if section.kind not in schema.SECTIONS:
            hint = did_you_mean(section.kind, schema.SECTIONS)
            text = f"[{title}]: there is no such section. {hint}".strip()
            yield Problem(where=section.where, text=text)
        elif not section.name and section.kind not in schema.WITHOUT_NAME:
            text = f"[{title}] needs a name: [{section.kind} NAME]"
            yield Problem(where=section.where, text=text)


def _sound(document: Document, kind: str, problems: list[Problem]) -> dict[str, dict[str, Any]]:
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
    """Return the sound ``[key]`` sections."""
    found = _sound(document, "key", problems)
    return {name: Key(name=name, location=v["key_location"]) for name, v in found.items()}


def volumes(document: Document, problems: list[Problem]) -> dict[str, Volume]:
    """Return the sound ``[volume]`` sections."""
    found = _sound(document, "volume", problems)
    return {name: Volume(name=name, **values) for name, values in found.items()}


def permissions(document: Document, problems: list[Problem]) -> dict[str, Permission]:
    """Return the sound ``[permission]`` sections."""
    sound: dict[str, Permission] = {}
    for name, values in _sound(document, "permission", problems).items():
        permission = Permission(name=name, **values)
        wrong = list(permission_problems(permission))
        where = document.sections["permission", name].where
        problems += [Problem(where=where, text=f"[permission {name}]: {text}") for text in wrong]
        if not wrong:
            sound[name] = permission
    return sound


def plugins(document: Document, problems: list[Problem]) -> dict[str, Plugin]:
    """Return the sound ``[plugin]`` sections; every key but setup_class is an argument."""
    sound: dict[str, Plugin] = {}
    for name, section in document.of("plugin").items():
        # As with every other key, its case does not matter.
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
            sound[name] = Plugin(name=name, arguments=arguments, **values)
    return sound


def inherited(document: Document, name: str, problems: list[Problem]) -> dict[str, Entry]:
    """Return the entries of a template with those of the templates it extends."""
    clusters = document.of("cluster")
    chain, layers = [name], [clusters[name].entries]
    while parent := layers[-1].get("extends"):
        if parent.value in chain:
            text = f"extends goes round in a circle: {' -> '.join([*chain, parent.value])}"
            problems.append(Problem(where=parent.where, text=text))
            break
        if parent.value not in clusters:
            text = f"extends = {parent.value}: no such [cluster]."
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
    """Yield what is wrong in the ``[cluster]`` sections, each problem once."""
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
            # One that others build on need not be whole.
            found += missing(section, entries, schema.CLUSTER)
        for problem in found:
            # A circle is reported once for each line, from wherever it is entered.
            same = str(problem.where) if "in a circle" in problem.text else str(problem)
            if same not in seen:
                seen.add(same)
                yield problem


def reference_problems(
    document: Document, values: Mapping[str, Any], entries: Mapping[str, Entry]
) -> Iterator[Problem]:
    """Yield a problem for each key, volume, plugin and permission that is named but not there."""
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
                text = f"{key.name}: no [{key.refers_to} {name}]. {hint}".strip()
                yield Problem(where=entries[key.name].where, text=text)


def given(overrides: Mapping[str, str]) -> dict[str, Entry]:
    """Return options of the command line as entries."""
    return {
        key: Entry(key=key, value=value, where=Where(other="command line"))
        for key, value in overrides.items()
    }
