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
from pathlib import Path

ROOT = Path(__file__).parents[2]
STYLE = ROOT / "docs" / "style.md"
PROSE = {".rst", ".md", ".example", ".toml", ".cu", ".cuh", ".sh", ".yml", ".pb", ".proto"}
QUOTED = re.compile(r"`([^`]+)`")
LEADERS = r"(?:\s+(?:#\s*|//\s*|\*\s+)?)"
"""What stands between two words of a phrase: space, or a line break and the mark of a comment."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The words of style.md.

    Attributes:
        instead: The term to write, by the words not to write.
        kept: Words that stay, by file relative to the repository.
    """

    instead: dict[str, str]
    kept: dict[str, frozenset[str]]

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches any of the words."""
        words = sorted(self.instead, key=len, reverse=True)
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(_word, words))})(?![\w-])", re.IGNORECASE)


def _word(word: str) -> str:
    # "There is no X" is usual English; "X is no Y" is not.
    before = r"(?<!there )" if word in {"is no", "are no"} else ""
    after = r"(?=\s+(?!longer|more|less|other|better|need)\w)" if before else ""
    body = re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", LEADERS)
    return before + body + after


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
            kept[file[1]] = frozenset(cells[1].lower().replace("`", "").split(", "))
    return Rules(instead, kept)


def find_words(path: Path, rules: Rules, name: str) -> Iterator[str]:
    """Yield a line of report for each word in the file that the rules exclude."""
    kept = rules.kept.get(name, frozenset())
    if "all" in kept:
        return
    for line, text in _texts(path):
        for found in rules.pattern.finditer(text):
            word = " ".join(re.sub(r"[#*/]", " ", found[0]).lower().split())
            if word in kept:
                continue
            at = line + text.count("\n", 0, found.start())
            yield f"{name}:{at}: '{word}': write {_term(word, rules)}"


def _term(word: str, rules: Rules) -> str:
    if word in rules.instead:
        return rules.instead[word]
    stems = (stem for stem in rules.instead if stem.endswith("*") and word.startswith(stem[:-1]))
    return rules.instead[next(stems)]


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what people read: all of a page; strings and comments of a source."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, text
        return
    comments: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string)
            continue
        if token.type in {tokenize.NL, tokenize.NEWLINE}:
            continue
        if comments:
            yield token.start[0] - len(comments), "\n".join(comments)
            comments = []
        if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            yield token.start[0], token.string


def tracked_files() -> Iterator[Path]:
    """Yield the files of the repository that people read."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        readable = path.suffix in PROSE | {".py"} or path.name in {"Makefile", "run"}
        if readable and path.is_file() and not name.endswith(("_pb2.py", "_pb2.pyi")):
            yield path


def main() -> int:
    """Print each excluded word; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; default: all")
    wanted = [path.resolve() for path in parser.parse_args().paths] or [ROOT]
    rules = read_rules(STYLE.read_text(encoding="utf-8"))
    found = [
        line
        for path in tracked_files()
        if any(path.is_relative_to(folder) for folder in wanted)
        for line in find_words(path, rules, path.relative_to(ROOT).as_posix())
    ]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
