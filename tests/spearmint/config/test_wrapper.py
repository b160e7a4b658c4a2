"""The user's code is compiled before the first trial; old experiments are converted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from spearmint.config.hips import read_hips
from spearmint.config.reader import load_experiment
from spearmint.config.wrapper import require_syntax
from spearmint.errors import InputError
from spearmint.model import Kind
from starmint.python2 import is_old_line
from tests import commands

CONFIG = 'language: PYTHON\nname: "net"\nvariable { name: "X" size: 2 type: FLOAT min: 0 max: 1 }\n'
OLD = """import math
import numpy as np

def main(job_id, params):
    print 'Anything printed here', job_id
    for k, v in params.iteritems():
        print k, v
    return params['X'][0] + params['X'][1]
"""
HIPS = {
    "language": "PYTHON",
    "main-file": "net.py",
    "experiment-name": "simple",
    "likelihood": "NOISELESS",
    "variables": {
        "X": {"type": "FLOAT", "size": 2, "min": 0, "max": 1.5},
        "n": {"type": "INT", "size": 1, "min": 1, "max": 3},
        "act": {"type": "ENUM", "size": 1, "options": ["relu", "tanh"]},
    },
}


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "config.pb").write_text(CONFIG)
    return tmp_path


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("def main(job_id, params):\n    return params[\n", "net.py:2"),
        ("x = 1\nif x\n    pass\n", "net.py:2"),
        ("\tx = 1\n        y = 2\n", "net.py:"),
        ("x = '\0'\n", "net.py"),
    ],
)
def test_a_syntax_error_is_told_with_its_line_before_a_trial(
    experiment: Path, code: str, place: str
) -> None:
    (experiment / "net.py").write_text(code)
    done = commands.spearmint(experiment)
    assert done.returncode == 2
    assert place in done.stderr
    assert "convert" not in done.stderr
    assert files(experiment) == {"config.pb", "net.py"}


def test_a_module_next_to_the_wrapper_is_compiled_too(experiment: Path) -> None:
    (experiment / "net.py").write_text("import helper.x\n")
    (experiment / "helper.py").write_text("import net\n\ndef f(:\n")
    done = commands.spearmint(experiment)
    assert done.returncode == 2
    assert "helper.py:3" in done.stderr


@pytest.mark.parametrize("before", ["try", "if 0", "def unused()"])
def test_an_import_that_may_never_run_is_not_followed(experiment: Path, before: str) -> None:
    after = "except ImportError:\n    pass\n" if before == "try" else ""
    (experiment / "net.py").write_text(f"{before}:\n    import old\n{after}")
    (experiment / "old.py").write_text(OLD)
    require_syntax(load_experiment(experiment))


def test_a_file_that_the_compiler_gives_up_on_is_left_to_the_trials(experiment: Path) -> None:
    (experiment / "net.py").write_text(f"x = {'-' * 100_000}1\n")
    require_syntax(load_experiment(experiment))


def test_a_program_that_is_not_executable_is_named(experiment: Path) -> None:
    (experiment / "config.pb").write_text(CONFIG.replace("PYTHON", "SHELL"))
    (experiment / "net").write_bytes(b"\x7fELF\x02\x01")
    done = commands.spearmint(experiment)
    assert done.returncode == 2
    assert f"chmod +x {experiment / 'net'}" in done.stderr
    assert files(experiment) == {"config.pb", "net"}


def test_code_with_a_warning_is_searched(experiment: Path) -> None:
    (experiment / "net.py").write_text(
        "def main(job_id, params):\n    '\\d'\n    return params['X'][0]\n"
    )
    assert commands.spearmint("--max-finished-jobs=1", experiment).returncode == 0


def test_python_2_is_named_then_converted_and_runs(experiment: Path) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    wrapper = experiment / "net.py"
    wrapper.write_text(OLD)
    done = commands.spearmint(experiment)
    assert done.returncode == 2
    assert f"{wrapper}:5" in done.stderr
    assert f"spearmint convert {experiment}" in done.stderr
    assert files(experiment) == {"config.pb", "net.py"}
    preview = commands.spearmint("convert", "--dry-run", experiment)
    assert "+    for k, v in params.items():" in preview.stdout
    assert wrapper.read_text() == OLD
    assert commands.spearmint("convert", experiment).returncode == 0
    assert (experiment / "net.py.python2").read_text() == OLD
    assert commands.spearmint("--max-finished-jobs=1", experiment).returncode == 0
    assert "nothing to convert" in commands.spearmint("convert", experiment).stdout


def test_an_earlier_copy_is_never_overwritten(experiment: Path) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    (experiment / "net.py").write_text(OLD)
    (experiment / "net.py.python2").write_text("mine")
    done = commands.spearmint("convert", experiment)
    assert done.returncode == 2
    assert "net.py.python2" in done.stderr
    assert (experiment / "net.py").read_text() == OLD


def test_without_fissix_the_command_is_named(
    experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fissix.refactor", None)
    (experiment / "net.py").write_text(OLD)
    done = commands.spearmint("convert", experiment)
    assert done.returncode == 1
    assert "install" in done.stderr
    assert "fissix" in done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("print 'x'", True),
        ("print x, y", True),
        ("    print >>f, x", True),
        ("print ('a %s') % b,", True),
        ("except ValueError, e:", True),
        ("raise ValueError, 'x'", True),
        ("if a <> b:", True),
        ("os.chmod(f, 0644)", True),
        ("exec 'x = 1'", True),
        ("print('x'", False),
        ("x = 10 if y else", False),
        ("printer = ", False),
        ("return params[", False),
        ("x = 0.05 +", False),
    ],
)
def test_lines_of_python_2_are_recognised(line: str, expected: bool) -> None:
    assert is_old_line(line) is expected


def test_a_config_json_is_told_apart_and_converted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(HIPS))
    (tmp_path / "net.py").write_text("def main(job_id, params):\n    return params['X'][0]\n")
    for given in (tmp_path, tmp_path / "config.json", tmp_path / "config.pb"):
        done = commands.spearmint(given)
        assert done.returncode == 2
        assert f"spearmint convert {tmp_path}" in done.stderr
    pytest.importorskip("fissix", reason="needs the extra python2")
    assert commands.spearmint("convert", tmp_path).returncode == 0
    found = load_experiment(tmp_path)
    assert [variable.kind for variable in found.variables] == [Kind.FLOAT, Kind.INT, Kind.ENUM]
    assert (found.name, found.variables[0].size, found.variables[0].high) == ("net", 2, 1.5)
    assert "experiment-name" not in (tmp_path / "config.pb").read_text()
    assert "# Not used: likelihood\n" in (tmp_path / "config.pb").read_text()
    assert commands.spearmint("--max-finished-jobs=1", tmp_path).returncode == 0
    assert "nothing to convert" in commands.spearmint("convert", tmp_path).stdout


def test_tasks_of_a_config_json_become_an_objective_and_constraints(tmp_path: Path) -> None:
    tasks = {"branin": {"type": "OBJECTIVE"}, "disk": {"type": "constraint"}}
    (tmp_path / "config.json").write_text(json.dumps(HIPS | {"tasks": tasks}))
    code = "def main(job_id, params):\n    return {'branin': 1.0, 'disk': params['X'][0] * 0 - 1}\n"
    (tmp_path / "net.py").write_text(code)
    text = read_hips(tmp_path / "config.json")
    assert "# Not used: likelihood\n" in text
    (tmp_path / "config.pb").write_text(text)
    found = load_experiment(tmp_path)
    assert [objective.name for objective in found.objectives] == ["branin"]
    assert [(limit.name, limit.low) for limit in found.constraints] == [("disk", 0.0)]
    done = commands.spearmint("--max-finished-jobs=1", "--method=RandomChooser", tmp_path)
    assert "infeasible" in done.stdout, done
    (tmp_path / "config.json").write_text(json.dumps(HIPS | {"tasks": {"main": {}, "b": {}}}))
    assert "# Not used: likelihood, tasks\n" in read_hips(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"variables": 3}, "variables"),
        ({"main-file": None}, "main-file"),
        ({"language": "MATLAB"}, "MATLAB"),
        ({"variables": {"x": {"type": "REAL"}}}, "'x'"),
        ({"variables": {"x": {"type": "FLOAT", "min": 0}}}, "max"),
        ({"variables": {"x": {"type": "ENUM"}}}, "options"),
        ({"variables": {"x": 3}}, "'x'"),
        ({"variables": {"x": {"type": "INT", "size": float("inf"), "min": 0, "max": 1}}}, "'x'"),
        ({"variables": {"x": {"type": "INT", "min": 0, "max": 10**400}}}, "'x'"),
        ({"variables": {"\ud800": {"type": "INT", "min": 0, "max": 1}}}, r"\ud800"),
        ({"main-file": "\ud800.py"}, r"main-file '\ud800.py'"),
        ({"tasks": ["c1"]}, "tasks"),
        ({"tasks": {"c1": {"type": "GOAL"}}}, "'GOAL'"),
        ({"tasks": {"main": {}, "\ud800": {"type": "CONSTRAINT"}}}, "tasks"),
    ],
)
def test_a_wrong_config_json_is_named(tmp_path: Path, change: dict[str, object], fact: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(HIPS | change))
    done = commands.spearmint("convert", tmp_path)
    assert done.returncode == 2
    assert fact in done.stderr
    assert files(tmp_path) == {"config.json"}


def test_a_config_json_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    done = commands.spearmint("convert", tmp_path)
    assert done.returncode == 2
    assert "config.json" in done.stderr


def test_a_config_json_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model": "gpt", "layers": 12}')
    with pytest.raises(InputError, match=r"no such file: .*config\.pb"):
        load_experiment(tmp_path)
    assert "nothing to convert" in commands.spearmint("convert", tmp_path).stdout


def test_hidden_files_and_dangling_links_are_not_converted(experiment: Path) -> None:
    (experiment / "._net.py").write_bytes(b"\0\5\x16\7")
    (experiment / ".#net.py").symlink_to("user@host.123")
    (experiment / "gone.py").symlink_to("nowhere")
    done = commands.spearmint("convert", experiment)
    assert (done.returncode, "nothing to convert" in done.stdout) == (0, True)
