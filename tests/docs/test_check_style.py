"""The checker of excluded words finds them wherever people read, and reports the right line."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
STYLE = """
| Term | Do |
|---|---|
| `not a rule` | x |

## Glossary

| Term | Meaning | Do not write |
|---|---|---|
| trial | One evaluation | |
| retry | Repeat | `try again`, `asked again` |
| fix | Repair | `mend*`, `cure` |
| invalid | Not accepted | `is no` |

Other archaic words: `hence`, `as it were`.

## Words that stay

| File | Words | Why |
|---|---|---|
| `kept.py` | cure, mended | Names |
| `all.rst` | all | A quotation |
"""


def load() -> ModuleType:
    path = ROOT / "docs" / "_tools" / "check_style.py"
    spec = importlib.util.spec_from_file_location("check_style", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


checker = load()
rules = checker.read_rules(STYLE)


def found(folder: Path, text: str, name: str = "x.py") -> list[str]:
    (folder / name).write_text(text)
    return [
        line.removeprefix(f"{name}:") for line in checker.find_words(folder / name, rules, name)
    ]


def test_the_tables_are_read() -> None:
    assert rules.instead == {
        "try again": "retry",
        "asked again": "retry",
        "mend*": "fix",
        "cure": "fix",
        "is no": "invalid",
        "hence": "plain English",
        "as it were": "plain English",
    }
    assert rules.kept == {"kept.py": {"cure", "mended"}, "all.rst": {"all"}}


def test_the_tables_of_the_page_have_many_words() -> None:
    page = checker.read_rules(checker.STYLE.read_text(encoding="utf-8"))
    assert len(page.instead) > 80
    assert page.kept["docs/style.md"] == {"all"}
    assert all((ROOT / name).is_file() for name in page.kept)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 'try again'\n", 1),
        ("x = f'{y} try again {z}'\n", 1),
        ("x = 1\n\n# hence\n", 3),
        ("x = 1  # mended\n", 1),
        ("def f():\n    '''Return.\n\n    The cure.\n    '''\n", 4),
        ("x = 1\n# Do not try\n# again\n", 2),
        ("x = (\n    'try '\n    'again'\n)\n", 2),
        ("x = (\n    f'{a} try '\n    f'again {b}'\n)\n", 2),
        ("x = 'failed:\\nhence'\n", 1),
        ("x = 'Try Again'\n", 1),
        ("x = '1 is no number'\n", 1),
    ],
)
def test_words_in_strings_and_comments_are_found(tmp_path: Path, text: str, line: int) -> None:
    (report,) = found(tmp_path, text)
    assert report.startswith(f"{line}: ")


@pytest.mark.parametrize(
    "text",
    [
        "hence = cure\n",  # names in code
        "x = f'{hence} {cure}'\n",
        "x = 'commended'\n",
        "x = 'hence-forth'\n",
        "x = 'there is no file'\n",
        "x = 'it is no longer here'\n",
        "a = 1  # try\nagain = 2  # or not\n",
        "# try\n\n# again\n",
        "x = ('try', 'again')\n",
    ],
)
def test_other_words_are_not_reported(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.rst", "A\n\nhence\n"),
        ("x.md", "A\n\nTry\nagain: hence\n"),
        ("x.sh", "a\n\n# hence\n"),
        ("x.cu", "a\n\n// hence\n"),
        ("x.toml", "a\n\nb = 'hence'\n"),
    ],
)
def test_other_files_are_read_as_a_whole(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, text, name)[-1] == f"{text.count(chr(10))}: 'hence': write plain English"


def test_words_that_stay_are_kept_in_their_file_only(tmp_path: Path) -> None:
    text = "# cure, mended, mending\n"
    assert found(tmp_path, text) == [
        "1: 'cure': write fix",
        "1: 'mended': write fix",
        "1: 'mending': write fix",
    ]
    assert found(tmp_path, text, "kept.py") == ["1: 'mending': write fix"]
    assert found(tmp_path, text, "all.rst") == []


def test_generated_files_are_not_read() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in checker.tracked_files()}
    assert {"README.rst", "Makefile", "sge_jobs/node/gpu-starter", "docs/style.md"} <= names
    assert not [name for name in names if name.endswith(("_pb2.py", ".ptx", ".png"))]


def test_the_command_fails_for_an_excluded_word_and_names_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.py").write_text("# hence\n")
    monkeypatch.setattr(checker, "ROOT", tmp_path)
    monkeypatch.setattr(checker, "tracked_files", lambda: [tmp_path / "x.py"])
    monkeypatch.setattr(sys, "argv", ["check_style"])
    assert checker.main() == 1
    assert capsys.readouterr().out == "x.py:1: 'hence': write plain English\n"
    (tmp_path / "x.py").write_text("# therefore\n")
    assert checker.main() == 0
