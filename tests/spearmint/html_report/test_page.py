"""The page loads no other file, and shows users' texts as text, not as HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from spearmint.formatting import format_duration, plain
from spearmint.html_report import live_page, write_report
from spearmint.model import Kind, Variable

HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.text += " "
        for name, value in attrs:
            if name in {"src", "href", "srcset", "action", "data", "poster"}:
                self.references.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def hostile(make_search: Any, tmp_path: Path) -> Page:
    """Return the page of a search in which every text contains HTML."""
    search = make_search(
        [
            Variable(name=HOSTILE, kind=Kind.FLOAT, low=0.0, high=1.0),
            Variable(
                name="o", kind=Kind.ENUM, options=(HOSTILE, '"><img src=http://x/ onerror=a>')
            ),
        ],
        name=f"name {HOSTILE}",
    )
    for i in range(12):
        search.complete(float(i))
    search.broken(f"reason {HOSTILE}", f"tail {HOSTILE}\x00\x1b[31mred\x1b[0m &amp; \ud800")
    return Page(write_report([search.session()], tmp_path / "out"))


def test_nothing_is_loaded_from_elsewhere(hostile: Page) -> None:
    assert len(hostile.references) == 5  # four plots and the icon
    assert all(reference.startswith("data:") for reference in hostile.references)
    style = hostile.source.partition("<style>")[2].partition("</style>")[0]
    assert style
    assert not re.search(r"url\(|@import", style)


def test_hostile_text_stays_text(hostile: Page) -> None:
    assert "script" not in hostile.tags
    assert hostile.handlers == []
    for text in ("name ", "reason ", "tail "):
        assert text + HOSTILE in hostile.text
    assert '"><img src=http://x/ onerror=a>' in hostile.text
    assert "·red &amp; ?" in hostile.text
    assert "\x1b" not in hostile.source


def test_figures_best_and_broken_are_told(make_search: Any, tmp_path: Path) -> None:
    search = make_search(maximize=True)
    for i in range(25):
        search.complete(float(i))
    for i in range(60):
        search.broken(f"cause number {i}.")
    search.running()

    page = Page(write_report([search.session()], tmp_path / "out"))

    text = " ".join(page.text.split())
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd[^>]*>(.+?)</dd>", page.source))
    named = {re.sub(r".*\((.*)\)", r"\1", name): value for name, value in figures.items()}
    assert (named["complete"], named["broken"], named["running"]) == ("25", "60", "1")
    assert "<span>38 min</span><span>30 s</span>" in page.source
    assert re.search(r"trial 25 24 lr\b", text)
    assert re.search(r"\b20 of 25\b", text)
    rows = re.findall(r"<tr><td>(\d+)</td>", page.source)
    assert rows == [str(i) for i in range(25, 5, -1)]
    assert re.search(r"\b50 of 60\b", text)
    assert "cause number 59." in text
    assert "cause number 10." in text
    assert "cause number 9." not in text


def test_each_trial_links_to_its_output(make_search: Any, tmp_path: Path) -> None:
    search = make_search()
    for value in (3.0, 1.0, 2.0):
        search.complete(value)
    search.broken()
    session = search.session()
    session.layout.outputs.mkdir(parents=True)
    for trial in (2, 4):
        session.layout.output(trial).write_text("epoch 1\n")
    folder = tmp_path / "re port" / "deep"

    page = Page(write_report([session], folder))

    links = [link for link in page.references if not link.startswith("data:")]
    files = [(folder / unquote(link)).resolve() for link in links]
    assert files == [session.layout.output(2), session.layout.output(4)]
    assert not any(link.startswith("/") for link in links)


def test_numbers_stay_in_one_line_and_choices_do_not(make_search: Any, tmp_path: Path) -> None:
    search = make_search(
        [
            Variable(name="lr", kind=Kind.FLOAT, low=1e-5, high=1.0, log=True),
            Variable(name="widths", kind=Kind.INT, low=1.0, high=512.0, size=3),
            Variable(name="act", kind=Kind.ENUM, options=("relu", "tanh")),
        ]
    )
    search.complete(1.0)
    source = Page(write_report([search.session()], tmp_path / "out")).source
    assert re.findall(r'<td class="(\w+)">', source) == ["number", "numbers", "text"]


def test_a_live_page_reloads_itself_and_a_written_one_does_not(
    make_search: Any, tmp_path: Path
) -> None:
    search = make_search()
    search.complete(1.0)
    reload = '<meta http-equiv="refresh" content="30">'
    assert reload in live_page([search.session()], below="/report")
    assert reload not in Page(write_report([search.session()], tmp_path / "out")).source


def test_an_empty_plot_says_why(make_search: Any, tmp_path: Path) -> None:
    search = make_search()
    for _ in range(3):
        search.complete(1.0)

    text = Page(write_report([search.session()], tmp_path / "out")).text

    assert re.search(r"Importance\b.*\b10\b.*\b3\.", text)
    assert "from spearmint import report; report(epoch, loss)" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.99, "1 min 0 s"),
        (185.0, "3 min 5 s"),
        (8100.0, "2 h 15 min"),
        (273700.0, "3 d 4 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_plain_drops_colours_and_control_characters() -> None:
    assert plain("a\r\nb\t\x1b[1;31mc\x1b[0m\x07") == "a\nb\tc·"
