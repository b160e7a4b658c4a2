"""Sources and pages use the words of the glossary: these came from elsewhere, and stay away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = re.compile(r"\b(mend(s|ed)?|cures?|bells?|tickets?|relays?|patiently|whosoever)\b", re.I)
# Names on disk, and words that a page explains.
ALLOWED = {
    "docs/reference/files.rst": {"tickets"},
    "docs/reference/gpu_names.rst": {"tickets"},
    "docs/why/files_of_an_extension.rst": {"relay"},
    "spearmint/layout.py": {"tickets"},
    "docs/how_to/extend.rst": {"relay"},
}


def places() -> Iterator[Path]:
    for package in ("spearmint", "starcluster", "starcluster_plugins", "sge_jobs", "pycuda_nn"):
        yield from (ROOT / package).rglob("*.py")
    for kind in ("start", "how_to", "reference", "why"):
        yield from (ROOT / "docs" / kind).glob("*.rst")
    yield from ROOT.glob("*.rst")


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in places()}),
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_word_of_former_days(folder: Path) -> None:
    for path in (path for path in places() if path.parent == folder):
        name = path.relative_to(ROOT).as_posix()
        found = {word[0].lower() for word in BANNED.finditer(path.read_text(encoding="utf-8"))}
        assert found <= ALLOWED.get(name, set()), name
