"""Parse the config file into sections of text values, each with its file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = re.compile(r"\[(?P<title>[^\]]*)\]\s*$")
_ENTRY = re.compile(r"(?P<key>[^=:\s][^=:]*?)\s*[=:]\s*(?P<value>.*)$")
# As ConfigParser of Python 2, which read the files of the original: "rem" only at a line's start.
_COMMENT = re.compile(r"(^|\s)[#;].*$|^rem(\s.*)?$", re.IGNORECASE)
OTHERS = 0o077
# Section names of older config files, and their names now.
OLD_KINDS = {"keypair": "key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Source of a value: a line of a file, or another place such as an option."""

    file: Path | None = None
    line: int = 0
    other: str = ""

    def __str__(self) -> str:
        if self.file is None:
            return self.other
        return f"{short(self.file)}:{self.line}" if self.line else short(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of the config and its place."""

    where: Where
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One ``key = value``."""

    key: str
    value: str
    where: Where


@dataclass(slots=True, kw_only=True)
class Section:
    """A section ``[kind name]``; ``[global]`` and ``[aws info]`` have no name."""

    kind: str
    name: str
    where: Where
    entries: dict[str, Entry] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Document:
    """All sections of a file and its includes, and the problems of reading them."""

    sections: dict[tuple[str, str], Section] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, section: Section) -> None:
        """Add ``section``; duplicate names are problems, sections without a name are merged."""
        first = self.sections.setdefault((section.kind, section.name), section)
        if first is section:
            return
        if section.name:
            text = f"duplicate section [{section.kind} {section.name}]; first at {first.where}"
            self.problems.append(Problem(where=section.where, text=text))
            return
        for key, entry in section.entries.items():
            if key in first.entries:
                text = f"duplicate key {key}; first at {first.entries[key].where}"
                self.problems.append(Problem(where=entry.where, text=text))
            first.entries.setdefault(key, entry)

    def of(self, kind: str) -> dict[str, Section]:
        """Return the sections of ``kind`` by name."""
        return {
            name: found
            for (section_kind, name), found in self.sections.items()
            if section_kind == kind
        }


def short(path: Path) -> str:
    """Return ``path`` with the home directory as ``~``."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def expand(path: str, origin: Path | None = None) -> Path:
    """Return ``path`` with ``~`` and ``$NAME`` expanded; relative to the file ``origin``."""
    found = Path(os.path.expandvars(path)).expanduser()
    return found if found.is_absolute() or origin is None else origin.parent / found


def others_can_read(path: Path) -> bool:
    """Return whether the group or other users have any permission on ``path``."""
    return bool(path.stat().st_mode & OTHERS)


def read(path: Path) -> Document:
    """Read ``path`` and its includes. Raises OSError if ``path`` cannot be read."""
    document = Document()
    _read_into(document, path, (path,))
    return document


def _read_into(document: Document, path: Path, chain: tuple[Path, ...]) -> None:
    text = path.read_text(encoding="utf-8-sig")
    sections, problems = parse(text, path)
    document.problems += problems
    for section in sections:
        include = section.entries.pop("include", None) if section.kind == "global" else None
        document.add(section)
        if include:
            _include(document, include, path, chain)


def _include(document: Document, entry: Entry, path: Path, chain: tuple[Path, ...]) -> None:
    for name in filter(None, (part.strip() for part in entry.value.split(","))):
        file = expand(name, path)
        problem = ""
        if file in chain:
            problem = f"include = {name}: {short(file)} includes itself"
        elif not file.is_file():
            problem = f"include = {name}: no such file: {short(file)}"
        elif others_can_read(file):
            problem = f"include = {name}: other users can read it; run: chmod 600 {short(file)}"
        if problem:
            document.problems.append(Problem(where=entry.where, text=problem))
            continue
        try:
            _read_into(document, file, (*chain, file))
        except (OSError, UnicodeDecodeError) as error:
            text = f"include = {name}: cannot read it: {error}"
            document.problems.append(Problem(where=entry.where, text=text))


def parse(text: str, path: Path) -> tuple[list[Section], list[Problem]]:
    """Return the sections of ``text`` in order, and the problems of its lines."""
    sections: list[Section] = []
    problems: list[Problem] = []
    last: Entry | None = None
    depth = 0
    for number, line, indent in _lines(text):
        where = Where(file=path, line=number)
        if header := _HEADER.match(line):
            kind, _, name = _kind_and_name(header["title"])
            sections.append(Section(kind=kind, name=name, where=where))
            last = None
        elif not sections:
            problems.append(Problem(where=where, text="expected a [section] before the first key"))
        elif last is not None and indent > depth:
            last = Entry(key=last.key, value=f"{last.value} {line}".strip(), where=last.where)
            sections[-1].entries[last.key] = last
        elif found := _ENTRY.match(line):
            entries, is_plugin = sections[-1].entries, sections[-1].kind == "plugin"
            key = found["key"] if is_plugin else found["key"].lower()
            if first := _same(key, entries):
                text_ = f"duplicate key {key}; first at {first.where}"
                problems.append(Problem(where=where, text=text_))
                continue
            depth = indent
            last = entries[key] = Entry(key=key, value=found["value"], where=where)
        else:
            problems.append(Problem(where=where, text=f"expected 'key = value', not '{line}'"))
    return sections, problems


def _same(key: str, entries: Mapping[str, Entry]) -> Entry | None:
    """Return the entry of ``key``; the case of its letters does not matter."""
    return next((entry for name, entry in entries.items() if name.lower() == key.lower()), None)


def _lines(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the number, text and indentation of each line, without comments and empty lines."""
    for number, line in enumerate(text.splitlines(), start=1):
        bare = _COMMENT.sub("", line).rstrip()
        if bare.strip():
            yield number, bare.strip(), len(bare) - len(bare.lstrip())


def _kind_and_name(title: str) -> tuple[str, str, str]:
    words = " ".join(title.split())
    if words.lower() in ("aws info", "aws", "global"):
        return words.lower(), "", ""
    kind, blank, name = words.partition(" ")
    return OLD_KINDS.get(kind.lower(), kind.lower()), blank, name
