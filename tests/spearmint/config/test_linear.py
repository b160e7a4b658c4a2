"""Linear constraints of a config.pb: read from text, and refused with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.config.linear import linear_constraints, unmet
from spearmint.config.linear_text import LinearProblem
from spearmint.config.reader import load_experiment
from spearmint.errors import ConfigError
from spearmint.linear import LinearConstraint
from spearmint.model import Kind, Trial, TrialState, Variable
from tests.spearmint.config.test_config import HEAD, load

A, UNITS = "a", "units"
VARIABLES = (
    Variable(name="a", kind=Kind.INT, low=1, high=8),
    Variable(name="units", kind=Kind.INT, size=2, low=8, high=512),
    Variable(name="m", kind=Kind.FLOAT, low=0, high=1),
    Variable(name="drop-out p", kind=Kind.FLOAT, low=0, high=1),
    Variable(name="act", kind=Kind.ENUM, options=("relu",)),
)
BLOCKS = (
    'variable { name: "a" type: INT size: 2 min: 1 max: 9 }\n'
    'variable { name: "x" type: FLOAT min: 0 max: 1 log: false }\n'
    'variable { name: "act" type: ENUM options: "p" options: "q" }\n'
)


@pytest.mark.parametrize(
    ("text", "weights", "high"),
    [
        ("a >= 3", {"a": -1.0}, -3.0),
        ("units[0]>=units[ 1 ]", {"units[1]": 1.0, "units[0]": -1.0}, 0.0),
        ("m + drop-out p <= 1.2", {"m": 1.0, "drop-out p": 1.0}, 1.2),
        ("2*(m - .5) <= --drop-out p/4", {"m": 2.0, "drop-out p": -0.25}, 1.0),
        ("a < 4", {"a": 1.0}, 3.0),
        ("a <= 3.5", {"a": 1.0}, 3.0),
        ("a*2 + units[1] == 20", {"a": 2.0, "units[1]": 1.0}, 20.0),
        ("-a <= -3 + +m", {"a": -1.0, "m": -1.0}, -3.0),
        ("1e1 <= units[0] + units[0]", {"units[0]": -2.0}, -10.0),
    ],
)
def test_a_comparison_is_a_weighted_sum(text: str, weights: dict[str, float], high: float) -> None:
    (found,) = linear_constraints(text, VARIABLES)
    assert dict(found.weights) == weights
    assert found.high == high


def test_a_chain_of_signs_is_several_constraints() -> None:
    found = linear_constraints(" 2 <=  a <units[0]", VARIABLES)
    assert [dict(each.weights) for each in found] == [{"a": -1.0}, {"a": 1.0, "units[0]": -1.0}]
    assert [each.high for each in found] == [-2.0, -1.0]
    assert {each.text for each in found} == {"2 <= a <units[0]"}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("m == 0.5", ["==", "'m'", "FLOAT"]),
        ("a >= 9", ["no point", "1 to 8"]),
        ("2*a == 2.5 + 2", ["no point"]),
        ("m * drop-out p < 1", ["not linear"]),
        ("a / m < 1", ["not linear"]),
        ("a", ["compares nothing"]),
        ("", ["number or a variable"]),
        ("a >=", ["its end"]),
        ("a >= aa", ["'aa'", "Did you mean 'a'"]),
        ("units >= 2", ["2 elements", "units[0]"]),
        ("units[2] >= 9", ["2 elements"]),
        pytest.param(f"units[{'9' * 5000}] >= 9", ["2 elements"], id="long index"),
        ("act > 1", ["ENUM"]),
        ("a - a <= 1", ["no variable"]),
        ("m < 0.5 > 0.2", ["a comparison of", "no variable"]),
        ("m / 0 < 1", ["by 0"]),
        ("(" * 60 + "m", ["brackets"]),
        ("a = 3", ["'= 3'"]),
        ("a != 3", ["'!= 3'"]),
        ("a >= 3)", ["')'"]),
        ("m >= 1e999", ["too large"]),
        ("a ** 2 < 3", ["'* 2 < 3'"]),
        ("__import__('os') > 1", ["'__import__'"]),
        ("a > " + "1+" * 9000 + "1", ["too long"]),
    ],
)
def test_other_texts_are_errors(text: str, facts: list[str]) -> None:
    with pytest.raises(LinearProblem) as caught:
        linear_constraints(text, VARIABLES)
    for fact in facts:
        assert fact in f"{caught.value.what}\n{caught.value.fix}"


def test_rounding_refuses_no_point_of_a_user() -> None:
    (at_most,) = linear_constraints("m + drop-out p <= 0.3", VARIABLES)
    assert 0.1 + 0.2 > 0.3
    assert at_most.holds({"m": 0.1, "drop-out p": 0.2})
    assert not at_most.holds({"m": 0.1, "drop-out p": 0.2001})
    (below,) = linear_constraints("m + drop-out p < 0.3", VARIABLES)
    assert not below.holds({"m": 0.1, "drop-out p": 0.2})
    assert below.holds({"m": 0.1})  # the other one is inactive


def test_the_line_of_a_wrong_constraint(tmp_path: Path) -> None:
    path = tmp_path / "config.pb"
    path.write_text(HEAD + BLOCKS + 'require: "a[0] >= a[1]"\nrequire: "a[0] + act <= 3"\n')
    with pytest.raises(ConfigError, match=r"config.pb:7:\d+: .*'act'"):
        load_experiment(path)


def test_constraints_of_a_file(tmp_path: Path) -> None:
    experiment = load(tmp_path, HEAD + BLOCKS + 'require: "a[0] >= a[1]"\nrequire: "0 < x <= .9"\n')
    assert experiment.require == ["a[0] >= a[1]", "0 < x <= .9"]
    assert len(experiment.linear) == 3
    trial = Trial(id=1, state=TrialState.COMPLETE, params={"a": (1, 2), "x": (0.95,)})
    assert experiment.violations(trial) == experiment.require


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('seed_point { param { name: "a" int_val: [1, 2] } }', "7:1"),
        ('variable { name: "y" type: FLOAT min: 0 max: 1 guess: 0.9 }', "guess"),
    ],
)
def test_seed_points_and_guesses_meet_the_constraints(tmp_path: Path, line: str, fact: str) -> None:
    path = tmp_path / "config.pb"
    more = 'require: "y <= 0.5"\n' if "y" in line.partition("name")[2][:6] else ""
    path.write_text(f'{HEAD}{BLOCKS}require: "a[0] >= a[1]"\n{line}\n{more}')
    with pytest.raises(ConfigError, match="require") as caught:
        load_experiment(path)
    assert fact in str(caught.value)


def test_a_constraint_counts_where_its_variables_are_active(tmp_path: Path) -> None:
    conditional = (
        'variable { name: "model" type: ENUM options: "svm" options: "net" }\n'
        'variable { name: "C" type: FLOAT min: 0 max: 9 when: "model=svm" }\n'
        'variable { name: "w" type: FLOAT min: 0 max: 9 when: "model=net" }\n'
        'variable { name: "x" type: FLOAT min: 0 max: 9 }\n'
    )
    experiment = load(tmp_path, f'{HEAD}{conditional}require: "C + x <= 9"\n')
    variables = experiment.variables

    def wrong(**values: float | str) -> LinearConstraint | None:
        return unmet(experiment.linear, variables, values)

    assert wrong(model="svm", C=5.0, x=5.0) is not None
    assert wrong(model="svm", C=5.0) is None
    assert wrong(model="net", x=9.0) is None
    path = tmp_path / "config.pb"
    path.write_text(f'{HEAD}{conditional}require: "C <= w"\n')
    with pytest.raises(ConfigError, match="never counts"):
        load_experiment(path)
