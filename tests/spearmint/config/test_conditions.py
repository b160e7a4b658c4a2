"""Variables with ``when``: what they need, and errors with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.conditions import Condition, active_variables, parents_first, requirements
from spearmint.config.conditions import ConditionProblem, with_conditions
from spearmint.config.reader import load_experiment
from spearmint.config.variables import describe
from spearmint.errors import ConfigError
from spearmint.model import Kind, Variable
from tests.spearmint.config.test_config import HEAD, load

SPACE = """
variable { name: "degree" type: INT min: 2 max: 4 when: "kernel = poly" }
variable { name: "kernel" type: ENUM options: "rbf" options: "poly" when: "model=svm" }
variable { name: "model" type: ENUM options: "svm" options: "a|b" options: "net" }
variable { name: "layers" type: INT min: 1 max: 3 when: "model=net|a|b" when: "model=net" }
variable { name: "w" type: FLOAT size: 2 min: 0 max: 1 when: "layers=2|3" }
variable { name: "x" type: FLOAT min: 0 max: 1 when: "model=a|b" }
"""


def test_a_variable_is_active_where_it_and_its_parents_need_it(tmp_path: Path) -> None:
    text = SPACE.replace('when: "model=net|a|b" ', "")
    variables = load(tmp_path, HEAD + text).variables
    degree, kernel, _, layers, w, x = variables
    assert degree.when == (Condition("kernel", ("poly",)),)
    assert w.when == (Condition("layers", (2, 3)),)
    assert x.when == (Condition("model", ("a|b",)),)
    assert describe(kernel).endswith("when model=svm")
    assert describe(layers).endswith("when model=net")

    def active(**values: object) -> list[str]:
        return [variable.name for variable in active_variables(variables, values)]

    assert active(model="svm", kernel="poly") == ["degree", "kernel", "model"]
    assert active(model="net", layers=1, kernel="poly") == ["model", "layers"]
    assert active(model="net", layers=3) == ["model", "layers", "w"]
    assert active(model="a|b", layers=3) == ["model", "x"]
    assert active() == ["model"]
    order = [variable.name for variable in parents_first(variables)]
    assert order[0] == "model"
    assert order.index("kernel") < order.index("degree")


MODEL = 'variable { name: "model" type: ENUM options: "svm" options: "forest" }\n'
DEPTH = 'variable { name: "depth" type: INT min: 1 max: 3 when: "model=forest" }\n'


@pytest.mark.parametrize(
    ("when", "facts"),
    [
        ('when: "svm"', ["'svm'", "'x'", "5:48"]),
        ('when: "model="', ["'model='", "5:48"]),
        ('when: "modle=svm"', ["'modle'", "Did you mean 'model'?", "5:48"]),
        ('when: "model=svn"', ["'svn'", "'model'", "svm, forest", "Did you mean 'svm'?"]),
        ('when: "model=svm|svm"', ["duplicate", "'svm'"]),
        ('when: "depth=4"', ["'4'", "'depth'", "1", "3"]),
        ('when: "depth=1.5"', ["'1.5'", "'depth'"]),
        ('when: "x=1"', ["'x'", "1 FLOAT"]),
        ('when: "model=svm" when: "depth=2"', ["'x'", "'model'", "never active"]),
    ],
)
def test_a_wrong_condition_is_an_error_with_its_line(
    tmp_path: Path, when: str, facts: list[str]
) -> None:
    path = tmp_path / "config.pb"
    line = f'variable {{ name: "x" type: FLOAT min: 0 max: 1 {when} }}\n'
    path.write_text(HEAD + "#\n" * (3 - (HEAD + MODEL).count("\n")) + MODEL + DEPTH + line)
    with pytest.raises(ConfigError) as caught:
        load_experiment(path)
    for fact in facts:
        assert fact in str(caught.value).replace(f"{path}:", "")


def test_a_cycle_is_named(tmp_path: Path) -> None:
    names = {"a": "b", "b": "c", "c": "a"}
    text = "".join(
        f'variable {{ name: "{name}" type: INT min: 0 max: 1 when: "{other}=1" }}\n'
        for name, other in names.items()
    )
    with pytest.raises(ConfigError, match="a -> b -> c -> a") as caught:
        load(tmp_path, HEAD + text)
    assert "config.pb:3:" in str(caught.value)
    with pytest.raises(ConfigError, match="a -> a"):
        load(tmp_path, HEAD + 'variable { name: "a" type: INT min: 0 max: 1 when: "a=1" }\n')


@pytest.mark.parametrize(
    ("point", "facts"),
    [
        ('param { name: "depth" int_val: 2 }', ["depth", "model=forest"]),
        (
            'param { name: "depth" int_val: 2 } param { name: "model" str_val: "svm" }',
            ["depth", "model=forest", "svm"],
        ),
    ],
)
def test_a_seed_point_has_active_variables_only(
    tmp_path: Path, point: str, facts: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, HEAD + MODEL + DEPTH + f"seed_point {{ {point} }}\n")
    for fact in facts:
        assert fact in str(caught.value)
    good = point.partition(" param")[0] + ' param { name: "model" str_val: "forest" }'
    assert load(tmp_path, HEAD + MODEL + DEPTH + f"seed_point {{ {good} }}\n").seed_points


def test_conditions_that_share_parents_are_read_once(tmp_path: Path) -> None:
    """Each variable needs two others, which need the same two: 2^40 paths."""
    rows = (
        f'variable {{ name: "{name}{i}" type: INT min: 0 max: 1 {when} }}\n'
        for i in range(40)
        for when in ("" if i == 0 else f'when: "a{i - 1}=1" when: "b{i - 1}=1"',)
        for name in "ab"
    )
    variables = load(tmp_path, HEAD + "".join(rows)).variables
    assert len(requirements(variables)["a39"]) == 78


def test_a_chain_can_be_longer_than_the_stack() -> None:
    names = [f"v{i}" for i in range(1500)]
    variables = [Variable(name=name, kind=Kind.INT, low=0, high=1) for name in names]
    whens = {i: [f"v{i - 1}=1"] for i in range(1, len(names))}
    with_when = with_conditions(variables, whens)
    assert len(requirements(with_when)["v1499"]) == 1499
    with pytest.raises(ConditionProblem, match="v0 -> v1499 -> v1498"):
        with_conditions(variables, {**whens, 0: ["v1499=1"]})


@pytest.mark.parametrize(
    ("when", "values"),
    [
        ("a=b=c|d", ("c|d",)),
        ("a=b=c|d|e", ("c|d", "e")),
        ("a=b=f=g|e", ("e", "f=g")),
        ("a=b= x", (" x",)),
        ("a=b = e | c|d", ("c|d", "e")),
    ],
)
def test_names_and_options_can_have_the_signs_of_conditions(
    tmp_path: Path, when: str, values: tuple[str, ...]
) -> None:
    options = " ".join(f'options: "{option}"' for option in ("c|d", "e", "f=g", " x"))
    text = f'variable {{ name: "a=b" type: ENUM {options} }}\n'
    text += f'variable {{ name: "z" type: FLOAT min: 0 max: 1 when: "{when}" }}\n'
    assert load(tmp_path, HEAD + text).variables[1].when == (Condition("a=b", values),)


def test_the_order_of_values_does_not_matter(tmp_path: Path) -> None:
    layers = 'variable { name: "layers" type: INT min: 1 max: 30 }\n'
    line = 'variable { name: "z" type: FLOAT min: 0 max: 1 when: "layers=20|3" when: "model=b|a" }'
    model = 'variable { name: "model" type: ENUM options: "b" options: "c" options: "a" }\n'
    z = load(tmp_path, HEAD + layers + model + line).variables[2]
    other = line.replace("20|3", "3|20").replace("b|a", "a|b")
    assert load(tmp_path, HEAD + layers + model + other).variables[2] == z
    assert describe(z).endswith("when layers=3|20 and model=b|a")
