"""Check messages, docstrings, comments and pages against the word tables of docs/style.md."""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
STYLE = ROOT / "docs" / "style.md"
SUFFIXES = {
    *(".py", ".rst", ".md", ".html", ".css", ".cu", ".cuh", ".h", ".sh"),
    *(".example", ".toml", ".yml", ".yaml", ".pb", ".proto"),
}
"""Files to read, and those without a suffix: scripts and the Makefile."""
SKIPPED = ("_pb2.py", "LICENSE")
QUOTED = re.compile(r"`([^`]+)`")
GAP = r"""(?:\s*(?:["']+\s*[fFrR]{,2}["']+|\n\s*(?:\#|//|\*)+)\s*|\s+)"""
"""Between two words of a phrase: space, a line break in a comment, or adjacent string literals."""
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)  # Python 3.12 and later
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


@dataclass(frozen=True)
class Rules:
    """The words of style.md.

    Attributes:
        instead: The term to write, by the excluded word; ``*`` stands for any ending.
        kept: Words that stay, by file relative to the repository.
    """

    instead: dict[str, str]
    kept: dict[str, frozenset[str]]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches each excluded word, named by its index in ``instead``."""
        words = sorted(enumerate(self.instead), key=lambda item: -len(item[1]))
        either = "|".join(f"(?P<w{index}>{_expression(word)})" for index, word in words)
        return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)

    def word_of(self, found: re.Match[str]) -> str:
        """Return the excluded word that ``found`` matches."""
        return list(self.instead)[int((found.lastgroup or "w0")[1:])]


def _expression(word: str) -> str:
    body = GAP.join(re.escape(part).replace(r"\*", r"\w*") for part in word.split())
    if word in {"is no", "are no"}:  # "There is no X" is usual English; "X is no Y" is not.
        return rf"(?<!there ){body}(?=\s+(?!longer|more|less|other|better|need)\w)"
    return body


def read_rules(text: str) -> Rules:
    """Return the rules in the text of style.md."""
    instead: dict[str, str] = {}
    kept: dict[str, frozenset[str]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if heading == "Glossary" and len(cells) == 3:
            instead |= {word.lower(): cells[0] for word in QUOTED.findall(cells[2])}
        elif heading == "Glossary" and not cells:
            instead |= {word.lower(): "plain English" for word in QUOTED.findall(line)}
        elif heading == "Words that stay" and len(cells) == 3 and (file := QUOTED.match(cells[0])):
            words = frozenset(cells[1].lower().replace("`", "").split(", "))
            kept[file[1]] = kept.get(file[1], frozenset()) | words
    return Rules(instead, kept)


def find_words(path: Path, rules: Rules, name: str) -> Iterator[str]:
    """Yield ``NAME:LINE: 'WORD': write TERM`` for each word in the file that the rules exclude."""
    kept = rules.kept.get(name, frozenset())
    if "all" in kept:
        return
    for line, text in _texts(path):
        for found in rules.pattern.finditer(text):
            word = rules.word_of(found)
            written = " ".join(re.findall(r"[\w'-]*\w", found[0])).lower()
            if not kept & {word, written}:
                at = line + text.count("\n", 0, found.start())
                yield f"{name}:{at}: '{written}': write {rules.instead[word]}"


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of what people read: pages, strings and comments."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, source
        return
    lines = source.splitlines(keepends=True)
    for kind, first, start, last, end in _spans(source):
        text = "".join(lines[first - 1 : last])[start : end - len(lines[last - 1]) or None]
        if kind == tokenize.STRING:
            # Names in an f-string and the letters of "\n" are not words; lengths stay the same.
            text = re.sub(r"\{[^{}\n]*\}|\\\w", lambda found: "." * len(found[0]), text)
        yield first, text


def _spans(source: str) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield kind and ends of each comment and string; adjacent ones are one span."""
    span: tuple[int, int, int, int, int] | None = None
    depth, start = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == _FSTRING_START:
            start = start if depth else token.start
            depth += 1
            continue
        if depth and token.type != _FSTRING_END:
            continue
        if token.type == _FSTRING_END:
            depth -= 1
            if depth:
                continue
            kind, first = tokenize.STRING, start
        elif token.type in {tokenize.STRING, tokenize.COMMENT}:
            kind, first = token.type, token.start
        elif token.type == tokenize.NL:
            continue
        else:
            if span and span[0] == tokenize.STRING:
                yield span
                span = None
            continue
        adjacent = kind == tokenize.STRING or not token.line[: first[1]].strip()
        if span and span[0] == kind and adjacent and first[0] - span[3] <= 1:
            span = (*span[:3], *token.end)
        else:
            if span:
                yield span
            span = (kind, *first, *token.end)
    if span:
        yield span


def tracked_files() -> Iterator[Path]:
    """Yield the files of the repository that people read."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        readable = path.suffix in SUFFIXES or "." not in path.name
        if readable and path.is_file() and not name.endswith(SKIPPED):
            yield path


def main() -> int:
    """Print each excluded word with its place; return 1 if there is one."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="A name that must stay has a row in 'Words that stay' of docs/style.md.",
    )
    parser.add_argument(
        "paths", nargs="*", type=Path, help="Files or folders. Default: the whole repository."
    )
    wanted = [path.resolve() for path in parser.parse_args().paths] or [ROOT]
    rules = read_rules(STYLE.read_text(encoding="utf-8"))
    found = [
        line
        for path in tracked_files()
        if any(path.is_relative_to(folder) for folder in wanted)
        for line in find_words(path, rules, path.relative_to(ROOT).as_posix())
    ]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    if found:
        sys.stderr.write(f"{len(found)} words to replace; see docs/style.md.\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
