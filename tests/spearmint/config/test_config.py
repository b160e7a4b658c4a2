from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.config.reader import load_experiment
from spearmint.errors import ConfigError, InputError
from spearmint.model import Kind, Language

# Every kind of field in a config.pb of the original.
ORIGINAL = """language: PYTHON
name:     "branin"

# a comment
variable {
 name: "X"
 type: FLOAT
 size: 2
 min:  0
 max:  1
}
variable {
  name: "Y"  # another
  type: INT
  size: 5
  min:  -5
  max:  5
}
variable {
  name: "Z"
  type: ENUM
  size: 3
  options: "foo"
  options: "bar"
  options: 'baz'
}
"""

HEAD = 'language: PYTHON\nname: "x"\n'
LR = 'variable { name: "lr" type: FLOAT min: 0.1 max: 1 }\n'


def load(tmp_path: Path, text: str):
    path = tmp_path / "config.pb"
    path.write_text(text)
    return load_experiment(path)


def test_a_config_of_the_original_is_read_unchanged(tmp_path: Path) -> None:
    experiment = load(tmp_path, ORIGINAL)
    assert experiment.name == "branin"
    assert experiment.language is Language.PYTHON
    x, y, z = experiment.variables
    assert (x.kind, x.size, x.low, x.high) == (Kind.FLOAT, 2, 0.0, 1.0)
    assert (y.kind, y.size, y.low, y.high) == (Kind.INT, 5, -5, 5)
    assert z.options == ("foo", "bar", "baz")
    assert not experiment.maximize


def test_new_keys(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        HEAD
        + LR.replace("max: 1", "max: 1 log: true")
        + 'variable { name: "u" type: INT size: 2 min: 1 max: 9 }\n'
        + "direction: MAXIMIZE max_retries: 3 trial_timeout: 1.5\n"
        + 'seed_point { param { name: "lr" dbl_val: 0.5 } param { name: "u" int_val: [1, 9] } }\n'
        + 'seed_point { param { name: "lr" int_val: 1 } }\n',
    )
    assert experiment.variables[0].log
    assert experiment.maximize
    assert (experiment.max_retries, experiment.trial_timeout_s) == (3, 1.5)
    assert experiment.seed_points == ({"lr": (0.5,), "u": (1, 9)}, {"lr": (1.0,)})


def test_a_directory_stands_for_its_config(tmp_path: Path) -> None:
    (tmp_path / "config.pb").write_text(HEAD + LR)
    assert load_experiment(tmp_path).path == tmp_path / "config.pb"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (HEAD + "variabel { }", "3:1", ["'variabel'", "'variable'?"]),
        (HEAD + 'variable {\n  name: "a"\n  tipe: INT }', "5:3", ["'tipe'", "variable", "'type'?"]),
        ('language: PYTHN\nname: "x"\n' + LR, "1:11", ["PYTHN", "MATLAB, PYTHON, SHELL"]),
        ("language: TORCH\nname: 'x'\n" + LR, "1:1", ["TORCH", "PYTHON", "SHELL", "MATLAB"]),
        (HEAD + LR.replace("0.1", '"b"'), "3:40", ["float"]),
        (HEAD + LR.replace("min: 0.1", "min: 2"), "3:35", ["min 2", "max 1"]),
        (HEAD + 'variable { name: "a" type: INT min: 0.5 max: 3 }', "3:32", ["min", "'a'", "0.5"]),
        (HEAD + 'variable { name: "a" type: INT min: 0 }', "3:1", ["'a'", "max: 1"]),
        (HEAD + 'variable { name: "a" min: 0 max: 1}', "3:1", ["'a'", "type: ENUM"]),
        (HEAD + 'variable { name: "a" type: ENUM }', "3:1", ["'a'", 'options: "relu"']),
        (
            HEAD + 'variable { name: "a" type: ENUM options: "b" options: "b" }',
            "3:46",
            ["'b'", "'a'"],
        ),
        (HEAD + 'variable { name: "a" type: INT min: 0 max: 9 log: true }', "3:32", ["log"]),
        (HEAD + 'variable { name: "a" type: FLOAT min: nan max: 9 }', "3:34", ["'a'", "nan"]),
        (HEAD + 'variable { name: "a" type: FLOAT size: 0 min: 0 max: 9 }', "3:34", ["size 0"]),
        (HEAD + 'variable { name: "a" type: FLOAT size: 10001 min: 0 max: 9 }', "3:34", ["10,000"]),
        (HEAD + LR + LR, "4:12", ["'lr'"]),
        (HEAD + LR + 'seed_point { param { name: "x" dbl_val: 1 } }', "4:14", ["'x'", "lr"]),
        (HEAD + LR + 'seed_point { param { name: "lr" dbl_val: 7 } }', "4:14", ["from 0.1 to 1"]),
        (HEAD + LR + "trial_timeout: -1", "4:1", ["trial_timeout", "-1"]),
        ('language: PYTHON\nname: "a/b"\n' + LR, "2:1", ["'a/b'"]),
        (HEAD + "variable {", "3:10", ["Expected"]),
    ],
)
def test_an_error_names_its_place_and_what_was_expected(
    tmp_path: Path, text: str, place: str, words: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/config.pb:{place}: "), message
    for word in words:
        assert word in message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("field", ["language", "name", "variable"])
def test_a_missing_field_is_named_with_an_example(tmp_path: Path, field: str) -> None:
    lines = {"language": "language: PYTHON\n", "name": 'name: "x"\n', "variable": LR}
    text = "".join(line for name, line in lines.items() if name != field)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert f"'{field}'" in caught.value.what
    assert f"{field}" in caught.value.fix


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/absent\.pb"):
        load_experiment(tmp_path / "absent.pb")
