"""The pages on the Python API name every public name, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import os
import re
from pathlib import Path

import pytest

from tests.sge_jobs.fake_gridengine import FakeGridEngine

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "python"
PUBLIC = {
    "spearmint": "spearmint",
    "spearmint.training": "spearmint",
    "spearmint.choosers": "choosers",
    "spearmint.drivers": "drivers",
    "sge_jobs": "sge_jobs",
    "pycuda_nn": "pycuda_nn",
    "starcluster.clustersetup": "clustersetup",
}
CLUSTERSETUP = ("ClusterSetup", "DefaultClusterSetup", "Volumes", "for_each")


def names() -> list[tuple[str, str]]:
    """Return each public name with its module; starcluster.clustersetup has no ``__all__``."""
    exported = {
        module: getattr(importlib.import_module(module), "__all__", ()) for module in PUBLIC
    }
    exported["starcluster.clustersetup"] = CLUSTERSETUP
    return [(module, name) for module, found in exported.items() for name in found]


CONFIG = """\
language: PYTHON
name:     "parabola"
variable { name: "x"  type: FLOAT  min: 0  max: 1 }
"""


def text_of(page: str) -> str:
    return (PAGES / f"{page}.rst").read_text(encoding="utf-8")


@pytest.mark.parametrize(("module", "name"), names())
def test_every_public_name_has_an_entry(module: str, name: str) -> None:
    text = text_of(PUBLIC[module])
    entry = rf"^\.\. (?:auto\w+|py:data):: {re.escape(name)}$"
    assert re.search(entry, text, re.MULTILINE), name


@pytest.mark.parametrize(("module", "name"), names())
def test_every_public_name_is_in_an_example(module: str, name: str) -> None:
    if name != "Volumes":  # a type
        lines = re.findall(r"^   (?:>>>|\.\.\.) (.*)$", text_of(PUBLIC[module]), re.MULTILINE)
        assert any(re.search(rf"\b{re.escape(name)}\b", line) for line in lines), name


@pytest.fixture(name="_place")
def place_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a search and a fake Grid Engine."""
    (tmp_path / "config.pb").write_text(CONFIG)
    (tmp_path / "parabola.py").write_text("")
    (tmp_path / "experiment").mkdir()
    cell = FakeGridEngine(tmp_path / "cell")
    monkeypatch.setenv("PATH", f"{cell.programs}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "page", [path.stem for path in sorted(PAGES.glob("*.rst")) if path.stem != "index"]
)
@pytest.mark.usefixtures("_place")
def test_the_examples_run(page: str) -> None:
    path = PAGES / f"{page}.rst"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(path), module_relative=False, optionflags=flags)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_page_shows_the_config_of_its_example() -> None:
    shown = "\n".join(f"   {line}" for line in CONFIG.splitlines())
    assert shown in text_of("spearmint")
