"""The folder that ``write_report`` writes, for searches of every kind."""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from spearmint.errors import InputError
from spearmint.html_report import REPORT_FILES, write_report
from spearmint.layout import Layout
from spearmint.model import Experiment, Kind, Language, Result, Variable
from spearmint.store.opening import open_study
from spearmint.store.session import Session

PLOTS = {"best_value", "parallel_coordinates", "importance", "slices", "loss_curves"}
VALUES = {"best_value", "parallel_coordinates", "slices"}


def plots_in(folder: Path) -> set[str]:
    """Check the PNG files and return their stems."""
    for path in folder.glob("*.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert 800 <= width <= 3000, path
        assert 200 <= height <= 3000, path
        assert len(content) > 5000, f"{path} is almost blank"
    assert {path.name for path in folder.glob("*.*")} <= set(REPORT_FILES)
    return {path.stem for path in folder.glob("*.png")}


def quadratic(params: dict[str, Any]) -> float:
    return float((math.log10(params["lr"]) + 3.0) ** 2 + params["X[0]"])


def nothing(search: Any) -> None:
    pass


def one(search: Any) -> None:
    search.complete(0.5)


def all_equal(search: Any) -> None:
    for _ in range(30):
        search.complete(0.5)


def only_infinite(search: Any) -> None:
    for value in (math.inf, -math.inf, math.inf):
        search.complete(value)


def infinite_among_others(search: Any) -> None:
    for value in (math.inf, -math.inf, *[quadratic] * 20):
        search.complete(value)


def huge(search: Any) -> None:
    for value in (1e300, -1e300, 1.7e308, -1.7e308, 5e-324, 0.0, *[quadratic] * 20):
        search.complete(value)


def huge_and_positive(search: Any) -> None:
    for value in (1e300, 1e-300, *[quadratic] * 20):
        search.complete(value, {0: 1e300, 1: 1e-300, 2: math.inf, 3: math.nan})


def close_together(search: Any) -> None:
    for i in range(20):
        search.complete(1e9 + 1e-6 * i)


def only_broken_and_running(search: Any) -> None:
    search.broken()
    search.running()


SHAPES: list[tuple[Callable[[Any], None], set[str]]] = [
    (nothing, set()),
    (only_broken_and_running, set()),
    (one, VALUES),
    (all_equal, VALUES),
    (only_infinite, set()),
    (infinite_among_others, VALUES | {"importance"}),
    (huge, VALUES | {"importance"}),
    (huge_and_positive, PLOTS),
    (close_together, VALUES | {"importance"}),
]


MAXIMIZED = {infinite_among_others, close_together}


@pytest.mark.parametrize(
    ("fill", "expected"), SHAPES, ids=lambda part: getattr(part, "__name__", "")
)
def test_each_shape_of_search_has_a_page_and_its_plots(
    make_search: Any,
    tmp_path: Path,
    fill: Callable[[Any], None],
    expected: set[str],
) -> None:
    search = make_search(maximize=fill in MAXIMIZED)
    fill(search)

    page = write_report([search.session()], tmp_path / "out")

    assert page == tmp_path / "out" / "index.html"
    assert plots_in(page.parent) == expected
    assert page.read_text().count("data:image/png") == len(expected)


def test_spaces_of_every_shape(make_search: Any, tmp_path: Path) -> None:
    unit = {"kind": Kind.FLOAT, "low": 0.0, "high": 1.0}
    spaces = {
        "single": [Variable(name="x", **unit)],
        "forty": [Variable(name=f"variable_number_{i}", **unit) for i in range(40)],
        "odd": [
            Variable(name="fixed", kind=Kind.FLOAT, low=5.0, high=5.0),
            Variable(name="large", kind=Kind.INT, low=0, high=2**53),
            Variable(name="log", kind=Kind.INT, low=1, high=3, log=True),
            Variable(name="one", kind=Kind.ENUM, options=("only",)),
            Variable(name="many", kind=Kind.ENUM, options=tuple(f"o{i}" for i in range(100))),
            Variable(name="$x_{$", kind=Kind.ENUM, options=("_a", "a\nb", "日本 😀", "y" * 500)),
        ],
    }
    for name, variables in spaces.items():
        search = make_search(variables)
        for i in range(30):
            search.complete(float(i))
        write_report([search.session()], tmp_path / name)

    assert plots_in(tmp_path / "single") == VALUES
    assert plots_in(tmp_path / "forty") == plots_in(tmp_path / "odd") == VALUES | {"importance"}
    assert re.search(r"\b15\b[^0-9]*\b40\b", (tmp_path / "forty" / "index.html").read_text())


def test_three_thousand_trials(make_search: Any, tmp_path: Path) -> None:
    search = make_search()
    for _ in range(3000):
        search.complete(quadratic, {step: 1.0 / (1 + step) for step in range(10)})

    page = write_report([search.session()], tmp_path / "out")

    assert plots_in(page.parent) == PLOTS
    assert page.stat().st_size < 5_000_000


def test_a_stored_search_is_only_read(tmp_path: Path, mixed: list[Variable]) -> None:
    experiment = Experiment(
        path=tmp_path / "config.pb", name="s", language=Language.PYTHON, variables=tuple(mixed)
    )
    study = open_study(experiment, f"sqlite:///{tmp_path}/s.db")
    done = study.ask()
    study.complete(done, Result(value=0.25, seconds=2.0, reports={0: 1.0, 1: 0.5}))
    study.break_(study.ask(), Result(value=None, reason="no luck", seconds=1.0), "its output")
    session = Session(experiment, Layout(tmp_path), study)
    before = study.trials()

    page = write_report([session], tmp_path / "out")

    assert study.trials() == before
    assert plots_in(page.parent) == VALUES | {"loss_curves"}
    text = page.read_text()
    assert "no luck" in text
    assert "its output" in text
    assert "0.25" in text


def test_a_running_trial_shows_what_it_reported_so_far(make_search: Any, tmp_path: Path) -> None:
    search = make_search()
    search.running()
    session = search.session()
    reports = session.layout.folder(1).reports
    reports.parent.mkdir(parents=True)
    reports.write_text("0,1.5\n1,0.5\n")

    page = write_report([session], tmp_path / "out")

    assert plots_in(page.parent) == {"loss_curves"}


def test_a_second_report_replaces_the_first(make_search: Any, tmp_path: Path) -> None:
    first = make_search(name="first")
    first.complete(1.0)
    write_report([first.session()], tmp_path / "out")
    second = make_search(name="second")

    page = write_report([second.session()], tmp_path / "out")

    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    assert "<h1>second</h1>" in page.read_text()


def test_the_page_is_written_last_and_by_rename(
    make_search: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = make_search()
    search.complete(1.0)
    renamed: list[str] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        assert not target.exists()
        renamed.append(target.name)
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    write_report([search.session()], tmp_path / "out")

    assert renamed[-1] == "index.html"
    assert {Path(name).stem for name in renamed[:-1]} == VALUES


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_a_missing_library_names_the_extra(
    make_search: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(InputError, match=library) as caught:
        write_report([make_search().session()], tmp_path / "out")

    assert f"{library}>=" in caught.value.fix
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_an_input_error(
    make_search: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match="Not a directory") as caught:
        write_report([make_search().session()], tmp_path / "file" / "out")
    assert str(tmp_path / "file" / "out") in caught.value.what
    assert "--output" in caught.value.fix


def test_matplotlib_is_left_as_it_was(make_search: Any, tmp_path: Path) -> None:
    search = make_search()
    search.complete(1.0)
    before = mpl.rcParams.copy()

    write_report([search.session()], tmp_path / "out")

    assert mpl.rcParams.copy() == before


def test_importing_costs_nothing_and_slow_modules_are_never_loaded(tmp_path: Path) -> None:
    code = (
        "import sys, spearmint.html_report\n"
        "heavy = {'matplotlib', 'jinja2', 'optuna', 'numpy'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
        "from spearmint.html_report.plots import best_value, canvas, curves, importance, parallel\n"
        "from spearmint.html_report.plots import slices\n"
        "from spearmint.html_report.plots.ped_anova import ped_anova\n"
        "found = ped_anova()\n"
        "slow = {'matplotlib.pyplot', 'sklearn', 'scipy.stats'} & sys.modules.keys()\n"
        "assert not slow, slow\n"
        "import optuna\n"
        "assert optuna.importance.PedAnovaImportanceEvaluator is found is ped_anova()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
