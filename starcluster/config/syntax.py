"""The config file as sections of lines: every value with its file and line; nothing typed yet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = re.compile(r"\[(?P<title>[^\]]*)\]\s*$")
_ENTRY = re.compile(r"(?P<key>[^=:\s][^=:]*?)\s*[=:]\s*(?P<value>.*)$")
_COMMENT = re.compile(r"(^|\s)#.*$")
OTHERS = 0o077
# Names of sections in older files.
OLD_KINDS = {"keypair": "key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A line of a file, or another place a value came from, such as an option."""

    file: Path | None = None
    line: int = 0
    other: str = ""

    def __str__(self) -> str:
        if self.file is None:
            return self.other
        return f"{short(self.file)}:{self.line}" if self.line else short(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and where."""

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
    """``[kind name]``; ``[global]`` and ``[aws info]`` have no name."""

    kind: str
    name: str
    where: Where
    entries: dict[str, Entry] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Document:
    """All sections of a file and of those it includes, and what could not be read."""

    sections: dict[tuple[str, str], Section] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, section: Section) -> None:
        """Add ``section``; a second one of its name is a problem, but one without name adds."""
        first = self.sections.setdefault((section.kind, section.name), section)
        if first is section:
            return
        if section.name:
            text = f"[{section.kind} {section.name}] is there already, at {first.where}"
            self.problems.append(Problem(where=section.where, text=text))
            return
        for key, entry in section.entries.items():
            if key in first.entries:
                text = f"{key} is there already, at {first.entries[key].where}"
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


def expand(path: str, beside: Path | None = None) -> Path:
    """Return ``path`` with ``~`` and ``$NAME`` filled in; a relative one is beside a file."""
    found = Path(os.path.expandvars(path)).expanduser()
    return found if found.is_absolute() or beside is None else beside.parent / found


def others_can_read(path: Path) -> bool:
    """Return whether group or others have any right on ``path``."""
    return bool(path.stat().st_mode & OTHERS)


def read(path: Path) -> Document:
    """Read ``path`` and the files it includes. Raises OSError where ``path`` cannot be read."""
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
            problem = f"include = {name}: there is no file {short(file)}"
        elif others_can_read(file):
            problem = f"include = {name}: others can read it; run: chmod 600 {short(file)}"
        if problem:
            document.problems.append(Problem(where=entry.where, text=problem))
            continue
        try:
            _read_into(document, file, (*chain, file))
        except (OSError, UnicodeDecodeError) as error:
            text = f"include = {name}: it cannot be read: {error}"
            document.problems.append(Problem(where=entry.where, text=text))


def parse(text: str, path: Path) -> tuple[list[Section], list[Problem]]:
    """Return the sections of ``text`` in order, and the lines that are neither."""
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
            problems.append(Problem(where=where, text="a line before the first [section]"))
        elif last is not None and indent > depth:
            last = Entry(key=last.key, value=f"{last.value} {line}".strip(), where=last.where)
            sections[-1].entries[last.key] = last
        elif found := _ENTRY.match(line):
            entries, is_plugin = sections[-1].entries, sections[-1].kind == "plugin"
            key = found["key"] if is_plugin else found["key"].lower()
            if key in entries:
                text_ = f"{key} is there already, at {entries[key].where}"
                problems.append(Problem(where=where, text=text_))
                continue
            depth = indent
            last = entries[key] = Entry(key=key, value=found["value"], where=where)
        else:
            problems.append(Problem(where=where, text=f"not 'key = value': {line}"))
    return sections, problems


def _lines(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield number, text without comment, and blanks before it, of lines with text."""
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
