"""Pictures from text: frames of a terminal as an animated SVG, drawings of lines as SVG."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "docs" / "_tools"
SVG = "{http://www.w3.org/2000/svg}"
STATIC = ROOT / "docs" / "_static"


@pytest.fixture(scope="module", name="film")
def film_() -> Iterator[SimpleNamespace]:
    """Yield the modules that record and write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        recorder = runpy.run_path(str(TOOLS / "record_demo.py"))
        yield SimpleNamespace(**vars(sys.modules["frames_svg"]), recorder=recorder)


def screens(film: SimpleNamespace, *texts: str, seconds: float = 1.0) -> list[object]:
    return [film.Frame(((film.Run(0, text),),) if text else ((),), seconds) for text in texts]


def total(frames: list[object]) -> float:
    return sum(frame.seconds for frame in frames)  # type: ignore[attr-defined]


def test_idle_time_is_cut_and_the_last_frame_stays(film: SimpleNamespace) -> None:
    frames = [
        *screens(film, *"ab", seconds=0.5),
        *screens(film, "c", seconds=60),
        *screens(film, "d"),
    ]
    paced = film.paced(frames, total=10, hold=4)
    assert total(paced) == pytest.approx(10)
    assert [frame.seconds for frame in paced] == pytest.approx([0.5, 0.5, 5, 4])


def test_a_short_recording_keeps_its_pace(film: SimpleNamespace) -> None:
    paced = film.paced(screens(film, *"abc"), total=30, hold=5)
    assert [frame.seconds for frame in paced] == [1, 1, 5]
    assert film.paced([], total=30, hold=5) == []


def test_a_step_has_one_frame_and_the_length_stays(film: SimpleNamespace) -> None:
    frames = [*screens(film, *"abcdefgh", seconds=0.1), *screens(film, "h", "end", seconds=2)]
    few = film.sampled(frames, 0.4)
    assert len(few) < len(frames)
    assert few[-1].rows == frames[-1].rows  # type: ignore[attr-defined]
    assert total(few) == pytest.approx(total(frames), abs=0.4)


def test_equal_frames_are_one(film: SimpleNamespace) -> None:
    few = film.sampled(screens(film, "a", "a", "a", "b"), 0.5)
    assert [frame.seconds for frame in few] == pytest.approx([3, 1])


def test_the_animation_shows_each_frame_in_its_time_without_a_script(film: SimpleNamespace) -> None:
    frames = [*screens(film, "one", "two <&>", seconds=1), *screens(film, "three", seconds=2)]
    text = film.animation(frames, columns=20, label="Three words")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own
    assert "script" not in text
    assert "prefers-reduced-motion" in text
    assert root.findtext(f"{SVG}title") == "Three words"
    assert [each.text for each in root.iter(f"{SVG}text")] == ["one", "two <&>", "three"]
    stops = re.findall(r"([\d.]+)%\{transform:translateY\((-?\d+)px\)", text)
    assert [(float(at), int(y)) for at, y in stops] == [
        (0, 0),
        (25, -film.ROW),
        (50, -2 * film.ROW),
    ]


def test_a_row_of_many_frames_is_stored_once(film: SimpleNamespace) -> None:
    frames = [film.Frame(((film.Run(0, "head"),), (film.Run(0, str(n)),)), 1.0) for n in range(9)]
    text = film.animation(frames, columns=20, label="")
    assert text.count(">head<") == 1
    assert text.count("<use ") == 18


def test_a_terminal_is_filmed_with_its_colours(film: SimpleNamespace, tmp_path: Path) -> None:
    code = (
        r"print('plain \033[1;32mgreen\033[0m'); import os; print(os.get_terminal_size().columns)"
    )
    recorded = film.recorder["Film"]()
    recorded.run([sys.executable, "-c", code], tmp_path)
    rows = recorded.frames[-1].rows
    assert [(run.text, run.column, run.colour, run.bold) for run in rows[0]] == [
        ("plain", 0, "default", False),
        ("green", 6, "green", True),
    ]
    assert rows[1][0].text == str(film.recorder["COLUMNS"])


def test_a_command_that_fails_ends_the_recording(film: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="status 3"):
        film.recorder["Film"]().run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_the_recording_runs_the_commands_of_make_demo(film: SimpleNamespace) -> None:
    names = [Path(argv[0]).name for argv in film.recorder["commands"]()]
    assert names == ["spearmint", "python", "spearmint"]


@pytest.mark.parametrize("name", ["demo.svg", "demo_last.svg"])
def test_the_recording_in_the_repository_is_small_and_moves_by_css_alone(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "spearmint report examples/digits" in "".join(
        ElementTree.fromstring(text).itertext()  # noqa: S314 - our own
    )
    length = re.search(r"animation:film ([\d.]+)s", text)
    assert (length is None) == (name == "demo_last.svg")
    assert length is None or 20 <= float(length[1]) <= 30


@pytest.fixture(scope="module", name="draw")
def draw_() -> object:
    return runpy.run_path(str(TOOLS / "diagrams.py"))["draw"]


def test_a_drawing_takes_the_colours_of_the_page(draw: object) -> None:
    svg = draw(".--------.\n| a_b-(c) +-->\n'--------'", "A box")  # type: ignore[operator]
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert root.get("aria-label") == "A box"
    assert [text.text for text in root.iter(f"{SVG}text")] == ["a_b-(c)"]
    assert "currentColor" in svg
    assert not re.search(r"\b(black|white)\b(?!-)", svg)


def test_two_drawings_share_no_identifier(draw: object) -> None:
    one, other = draw("--> one", ""), draw("--> other", "")  # type: ignore[operator]
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for svg in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_a_drawing_that_is_too_wide_for_a_phone_is_refused(draw: object) -> None:
    with pytest.raises(ValueError, match="44"):
        draw("-" * 44, "")  # type: ignore[operator]
