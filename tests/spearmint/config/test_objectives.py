from __future__ import annotations

import math
from pathlib import Path

import pytest

from spearmint.errors import ConfigError
from spearmint.outputs import Objective
from spearmint.store.distributions import references_of
from tests.spearmint.config.test_config import HEAD, LR, load

ERROR = 'objective { name: "error" }\n'
SPEED = 'objective { name: "speed" direction: MAXIMIZE }\n'


def test_objectives_have_directions(tmp_path: Path) -> None:
    experiment = load(tmp_path, HEAD + LR + ERROR + SPEED)
    assert experiment.objectives == (
        Objective(name="error"),
        Objective(name="speed", maximize=True),
    )
    assert experiment.has_front


def test_a_reference_is_the_worst_value_of_use(tmp_path: Path) -> None:
    limited = 'objective { name: "speed" direction: MAXIMIZE reference: 0 }\n'
    experiment = load(tmp_path, HEAD + LR + ERROR + limited)
    assert [each.reference for each in experiment.objectives] == [None, 0.0]
    (first, second) = references_of(experiment.objectives)
    assert math.isnan(first)
    assert second == 0.0
    assert references_of(load(tmp_path, HEAD + LR + ERROR + SPEED).objectives) == ()
    worst = (Objective(name="a", reference=0.5), Objective(name="b", maximize=True, reference=3.0))
    assert references_of(worst) == (0.5, -3.0)


def test_one_objective_is_the_value(tmp_path: Path) -> None:
    experiment = load(tmp_path, HEAD + LR + SPEED)
    assert experiment.maximize
    assert not experiment.has_front


@pytest.mark.parametrize(
    ("block", "facts"),
    [
        ("objective { direction: MAXIMIZE }", ["4:1"]),
        ('objective { name: "lr" }', ["'lr'", "4:13"]),
        ('objective { name: "seconds" }', ["'seconds'"]),
        (ERROR + ERROR, ["'error'", "5:13"]),
        (ERROR + 'constraint { name: "error" max: 1 }', ["'error'", "5:14"]),
        (ERROR + "direction: MINIMIZE", ["5:1", "direction"]),
        ('objective { name: "error" direction: UP }', ["UP"]),
        ('objective { name: "error" reference: 1 }', ["several objectives", "4:27"]),
        (ERROR + 'objective { name: "speed" reference: nan }', ["reference", "5:27"]),
    ],
)
def test_a_wrong_objective_is_an_error_with_its_line(
    tmp_path: Path, block: str, facts: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, HEAD + LR + block + "\n")
    assert all(fact in str(caught.value) for fact in facts), caught.value
