"""The check of docs/style.md finds what the page excludes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.tools import STYLE, tool

check_style = tool("check_style")
RULES = check_style.read_rules(STYLE.read_text(encoding="utf-8"))


def found(text: str, tmp_path: Path, name: str = "page.rst") -> list[str]:
    path = tmp_path / name
    path.write_text(text)
    return list(check_style.find_words(path, RULES, name))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Options stand over the template.", "stand over"),
        ("It is asked\nagain.", "asked again"),
        ("Mended twice.", "mended"),
        ("HITHERTO", "hitherto"),
        ("That is no duration.", "is no"),
    ],
)
def test_an_excluded_word_is_found_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (line,) = found(f"\n\n{text}\n", tmp_path)
    assert line.startswith(f"page.rst:3: '{words}'")


@pytest.mark.parametrize("text", ["There is no GPU.", "recommend it", "a bellwether", "mend-it"])
def test_other_words_are_not(text: str, tmp_path: Path) -> None:
    assert not found(text, tmp_path)


def test_of_a_source_only_comments_and_strings_are_read(tmp_path: Path) -> None:
    source = 'mend = 1  # mend\nx = f"cure {x}"\n# it is asked\n# again\n'
    lines = [line.split(":")[1] for line in found(source, tmp_path, "code.py")]
    assert lines == ["1", "2", "3"]


def test_every_term_has_a_meaning_and_no_word_is_excluded_that_is_a_term() -> None:
    terms = {term for cell in RULES.instead.values() for term in cell.split(", ")}
    assert not terms & RULES.instead.keys()
    assert len(RULES.instead) > 80
