"""The check of links finds what leads nowhere."""

from __future__ import annotations

from pathlib import Path

from tests.docs.tools import ROOT, tool

check_links = tool("check_links")

OTHER = '<h1 id="there">Other</h1>'


def broken(text: str, folder: Path) -> list[str]:
    (folder / "index.html").write_text(text)
    (folder / "other page.html").write_text(OTHER)
    found, _ = check_links.broken_in_html(folder)
    return [line.partition(": ")[2] for line in found]


def test_links_to_files_and_anchors_that_exist_pass(tmp_path: Path) -> None:
    text = """<a id="here" href="#here">x</a> <a href="other%20page.html#there">x</a>
    <img src="other%20page.html"> <a href="mailto:a@example.org">x</a>"""
    assert broken(text, tmp_path) == []


def test_a_missing_file_or_anchor_is_named_with_its_line(tmp_path: Path) -> None:
    text = """<a href="no.html">x</a>
    <a href="other%20page.html#no">x</a> <a href="#no">x</a> <img src="no.png"> <a href="htp:x">"""
    assert broken(text, tmp_path) == [
        "no.html: no such file",
        "other%20page.html#no: no such anchor",
        "#no: no such anchor",
        "no.png: no such file",
        "htp:x: unknown scheme",
    ]


def test_external_urls_are_collected_and_malformed_ones_named(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="https://example.org/a">x</a>')
    assert check_links.broken_in_html(tmp_path) == ([], {"https://example.org/a"})
    assert not check_links.malformed("https://example.org/a")
    assert check_links.malformed("https://localhost-typo/a")


def test_the_paths_that_the_readme_names_exist(tmp_path: Path) -> None:
    assert check_links.broken_in_sources(ROOT)[0] == []
    for name in check_links.SOURCES:
        (tmp_path / name).write_text("")
    (tmp_path / "README.rst").write_text(
        "See ``docs/no/page.rst``, ``docs/_build/html``.\n\n.. image:: docs/no.png\n"
    )
    assert check_links.broken_in_sources(tmp_path)[0] == [
        "README.rst:3: docs/no.png: no such file",
        "README.rst:1: docs/no/page.rst: no such file",
    ]
