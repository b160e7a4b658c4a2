from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.errors import ConfigError
from spearmint.outputs import Objective
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
    ],
)
def test_a_wrong_objective_is_an_error_with_its_line(
    tmp_path: Path, block: str, facts: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, HEAD + LR + block + "\n")
    assert all(fact in str(caught.value) for fact in facts), caught.value
