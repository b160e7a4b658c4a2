"""What a trial can return: one number, or a dict of its objective and constraints."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from spearmint.trial.outputs import BadResult, to_result, to_text_result

NAMES = ["memory_gb", "accuracy"]
GOOD = {"objective": 0.5, "memory_gb": np.array([71]), "accuracy": np.float32(0.75)}


def test_a_dict_has_the_objective_and_the_constraints() -> None:
    expected = {"value": 0.5, "constraints": {"memory_gb": 71.0, "accuracy": 0.75}}
    assert to_result(GOOD, NAMES) == expected
    as_hips = {"main" if name == "objective" else name: value for name, value in GOOD.items()}
    assert to_result(as_hips, NAMES) == expected
    assert to_result({"main": 0.5}, []) == to_result(0.5, []) == {"value": 0.5}


def test_an_infinite_value_is_a_number() -> None:
    found = to_result({**GOOD, "objective": math.inf, "memory_gb": math.inf}, NAMES)
    assert found["value"] == found["constraints"]["memory_gb"] == math.inf


@pytest.mark.parametrize(
    ("returned", "facts"),
    [
        (0.5, ["0.5", "'objective'", "'memory_gb'", "'accuracy'"]),
        (None, ["None", "'memory_gb'"]),
        ({**GOOD, "memory_gb": math.nan}, ["NaN", "'memory_gb'"]),
        ({**GOOD, "objective": math.nan}, ["NaN", "'objective'"]),
        ({**GOOD, "memory_gb": None}, ["None", "'memory_gb'"]),
        ({**GOOD, "memory_gb": [1, 2]}, ["[1, 2]", "'memory_gb'"]),
        ({**GOOD, "memory_gb": "71 GB"}, ["'71 GB'", "'memory_gb'"]),
        ({**GOOD, "memorygb": 1.0}, ["'memorygb'", "Did you mean 'memory_gb'"]),
        ({**GOOD, 7: 1.0}, ["unknown 7"]),
        ({**GOOD, "main": 1.0}, ["'objective'", "'main'"]),
        ({"objective": 0.5, "memory_gb": 1.0}, ["'accuracy'"]),
        ({"memory_gb": 1.0, "accuracy": 1.0}, ["'objective'"]),
    ],
)
def test_a_wrong_result_is_named(returned: object, facts: list[str]) -> None:
    with pytest.raises(BadResult) as caught:
        to_result(returned, NAMES)
    assert all(fact in str(caught.value) for fact in facts), caught.value


def test_a_shell_trial_writes_one_number_or_json() -> None:
    assert to_text_result("0.5", []) == {"value": 0.5}
    text = json.dumps({"objective": 0.5, "memory_gb": 71, "accuracy": 0.75})
    assert to_text_result(text, NAMES) == to_result(GOOD, NAMES)
    for wrong in ("0.5", "", "{", "[0.5]", "true", '{"objective": 0.5}', "nan"):
        with pytest.raises(BadResult, match=r"\$SPEARMINT_RESULT"):
            to_text_result(wrong, NAMES)
    for wrong in ("", "true", "[0.5]", '"x"', "{}", "nan", '{"objective": NaN}'):
        with pytest.raises(BadResult, match=r"\$SPEARMINT_RESULT"):
            to_text_result(wrong, [])


def test_a_dict_without_declared_names_is_shown_with_what_is_expected() -> None:
    with pytest.raises(BadResult) as caught:
        to_result({"loss": 0.5, "acc": 1}, [])
    facts = ["'loss': 0.5", "one number", "{'objective': number}", "declared"]
    assert all(fact in str(caught.value) for fact in facts), caught.value
