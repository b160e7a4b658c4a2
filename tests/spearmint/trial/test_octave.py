"""Experiments in MATLAB's language, run by GNU Octave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spearmint.trial import octave
from tests import commands
from tests.spearmint.trial.test_runner import run_trial

CONFIG = """\
language: MATLAB
name: "braninhoo"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }
"""
BRANIN = """\
function result = braninhoo(job_id, params)
  x = params.X(1) * 15;
  y = params.X(2) * 15 - 5;
  result = (x - 5.1 / (4 * pi^2) * y^2 + 5 / pi * y - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(y) + 10;
  printf("trial %d: %f\\n", job_id, result);
end
"""
needs_octave = pytest.mark.skipif(
    octave.find_octave() is None, reason="needs Octave: apt-get install octave"
)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "config.pb").write_text(CONFIG)
    (tmp_path / "braninhoo.m").write_text(BRANIN)
    return tmp_path


@needs_octave
def test_a_search_runs(experiment: Path) -> None:
    done = commands.spearmint("--max-finished-jobs=3", "--method=RandomChooser", experiment)
    assert done.returncode == 0, done.stderr
    assert "trial 1: " in (experiment / "output" / "00000001.out").read_text()
    assert len(json.loads(commands.spearmint("export", "--json", experiment).stdout)) == 3


def run(tmp_path: Path, body: str, **params: object) -> dict[str, object]:
    code = f"function result = wrapper(job_id, params)\n{body}\nend\n"
    return run_trial(tmp_path, code, language="MATLAB", params=params)[0]


@needs_octave
def test_parameters_are_columns_and_cells_and_keep_their_digits(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "assert (params.X, [0.1; 1e-300]);\nassert (params.n, 3);\nassert (job_id, 7);\n"
        'assert (params.("größe %d"), {"a\\"b\\\\"; "ü%s"});\nresult = params.X(1);',
        X={"kind": "FLOAT", "values": [0.1, 1e-300]},
        n={"kind": "INT", "values": [3]},
        **{"größe %d": {"kind": "ENUM", "values": ['a"b\\', "ü%s"]}},
    )
    assert found.get("value") == 0.1, found


@needs_octave
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("error('no %d licence', 3);", "no 3 licence"),
        ("result = 'text';", "char"),
        ("result = [1 2];", "[1 2]"),
        ("result = 1 + 2i;", "expected one number"),
        ("result = NaN;", "NaN"),
        ("undefined_name(3);", "undefined_name"),
        ("", "result"),
        ("exit(4);", "status 4"),
        ("kill(getpid(), 9);", "SIGKILL"),
        ("result = ((;", "parse error"),
    ],
)
def test_a_failure_has_its_reason(tmp_path: Path, body: str, reason: str) -> None:
    assert reason in str(run(tmp_path, body)["reason"])


@needs_octave
@pytest.mark.parametrize(("body", "value"), [("result = true;", 1.0), ("result = -Inf;", -1e999)])
def test_one_number(tmp_path: Path, body: str, value: float) -> None:
    assert run(tmp_path, body)["value"] == value


def test_without_octave_the_search_says_what_to_install(
    experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(octave.shutil, "which", lambda _: None)
    done = commands.spearmint("--max-finished-jobs=1", experiment)
    assert done.returncode == 2
    assert "apt-get install octave" in done.stderr


def test_a_missing_file_is_named(experiment: Path) -> None:
    (experiment / "braninhoo.m").unlink()
    done = commands.spearmint("--max-finished-jobs=1", experiment)
    assert done.returncode == 2
    assert "braninhoo.m" in done.stderr


def test_octave_can_be_the_program_with_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/octave" if name == "octave" else None)
    assert octave.find_octave() == ["/bin/octave", "--no-gui", "--quiet"]
