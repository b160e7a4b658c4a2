"""The page on the architecture names every folder with its own sentence, and its tools run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "docs" / "_tools"
LONGEST = 110


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sentences = tool("room_sentences")
FOLDERS = [folder for package in sentences.PACKAGES for folder in sentences.folders(package)]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_room_says_in_one_sentence_what_it_is_for(folder: Path) -> None:
    sentence = sentences.sentence(folder)
    assert sentence.endswith("."), f"{folder}/__init__.py needs a docstring of one sentence"
    assert len(sentence) <= LONGEST, sentence
    assert sentence in sentences.page()


def test_the_page_shows_the_sentences_the_pictures_and_the_figures() -> None:
    page = (ROOT / "docs" / "why" / "architecture.rst").read_text(encoding="utf-8")
    for name in (
        "_generated/rooms.rst",
        "_tables/rooms.rst",
        "_static/rooms.png",
    ):
        assert name in page, name


def test_rooms_are_folders_and_files_beside_folders_on_layers() -> None:
    boxes = tool("rooms")
    package, split = ROOT / "sge_jobs", {".", "node"}
    assert boxes.box_name(package, Path("queue/qsub.py"), split) == "queue"
    assert boxes.box_name(package, Path("node/claim/locks.py"), split) == "node/claim"
    assert boxes.box_name(package, Path("node/sensor.py"), split) == "node/sensor"
    assert boxes.box_name(package, Path("node/sensor.py"), {"."}) == "node"
    assert boxes.box_name(package, Path("errors.py"), split) == "errors"
    view = boxes.PackageView("made_up", {name: boxes.Box(name, is_folder=True) for name in "abcd"})
    view.imports = {("a", "b"): 1, ("b", "c"): 1, ("c", "b"): 2, ("c", "d"): 1}
    boxes._set_layers(view)
    assert [box.layer for box in view.boxes.values()] == [2, 1, 1, 0]
    assert [name for name, box in view.boxes.items() if box.cycle] == ["b", "c"]
