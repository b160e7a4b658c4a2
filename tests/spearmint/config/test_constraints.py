from __future__ import annotations

import math
from pathlib import Path

import pytest

from spearmint.config.reader import load_experiment
from spearmint.errors import ConfigError
from spearmint.outputs import Constraint
from tests.spearmint.config.test_config import HEAD, LR, load


def test_constraints_have_one_or_two_limits(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        HEAD
        + LR
        + 'constraint { name: "memory_gb" max: 80 }\n'
        + 'constraint { name: "accuracy" min: 0.9 }\n'
        + 'constraint { name: "depth" min: -1 max: 1 }\n',
    )
    memory, accuracy, depth = experiment.constraints
    assert memory == Constraint(name="memory_gb", high=80.0)
    assert (accuracy.low, accuracy.high) == (0.9, math.inf)
    assert (depth.low, depth.high) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("block", "facts"),
    [
        ("constraint { max: 80 }", ["4:1"]),
        ('constraint { name: "m" }', ["'m'", "4:1"]),
        ('constraint { name: "m" max: inf }', ["'m'"]),
        ('constraint { name: "m" max: nan }', ["'m'"]),
        ('constraint { name: "m" min: 2 max: 1 }', ["'m'", "2", "1"]),
        ('constraint { name: "lr" max: 1 }', ["'lr'", "4:14"]),
        ('constraint { name: "value" max: 1 }', ["'value'"]),
        ('constraint { name: "objective" max: 1 }', ["'objective'"]),
        ('constraint { name: "m" max: 1 } constraint { name: "m" min: 0 }', ["'m'", "4:46"]),
        ('constraint { name: "m" below: 1 }', ["'below'"]),
    ],
)
def test_a_wrong_constraint_is_an_error_with_its_line(
    tmp_path: Path, block: str, facts: list[str]
) -> None:
    path = tmp_path / "config.pb"
    path.write_text(HEAD + LR + block + "\n")
    with pytest.raises(ConfigError) as caught:
        load_experiment(path)
    assert all(fact in str(caught.value) for fact in facts), caught.value


def test_gaps_and_excess() -> None:
    memory = Constraint(name="memory_gb", high=80.0)
    assert memory.gaps(90.0) == {"memory_gb": 10.0}
    assert (memory.excess(80.0), memory.excess(100.0), memory.excess(math.inf)) == (
        0.0,
        0.25,
        math.inf,
    )
    both = Constraint(name="depth", low=0.0, high=2.0)
    assert both.gaps(-1.0) == {"depth (min)": 1.0, "depth (max)": -3.0}
    assert (both.excess(-1.0), both.excess(3.0)) == (1.0, 0.5)
