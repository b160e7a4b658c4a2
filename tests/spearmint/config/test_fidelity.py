from __future__ import annotations

from pathlib import Path

import pytest

from spearmint.errors import ConfigError, StudyMismatch
from spearmint.fidelity import Fidelity
from spearmint.store.opening import open_study
from tests.spearmint.config.test_config import HEAD, LR, load

EPOCHS = 'fidelity { name: "epochs" min: 1 max: 81 reduction_factor: 3 }\n'


def test_a_block_gives_the_rungs(tmp_path: Path) -> None:
    assert load(tmp_path, HEAD + LR + EPOCHS).fidelity == Fidelity(
        name="epochs", low=1, high=81, reduction=3
    )
    assert load(tmp_path, HEAD + LR + "fidelity { max: 9 }\n").fidelity == Fidelity(high=9)
    assert load(tmp_path, HEAD + LR).fidelity is None


@pytest.mark.parametrize(
    ("block", "facts"),
    [
        ("fidelity { min: 1 }", ["4:1", "max"]),
        ("fidelity { max: 9 reduction_factor: 1 }", ["4:1", "reduction_factor 1"]),
        ("fidelity { min: 10 max: 9 }", ["min 10 and max 9"]),
        ("fidelity { min: 0 max: 9 }", ["min 0"]),
        ("fidelity { min: 5 max: 9 }", ["one rung"]),
        ("fidelity { max: 4294967295 }", ["2**31"]),
        ("fidelity { max: -1 }", ["-1"]),
        (EPOCHS + EPOCHS, ["fidelity"]),
        ("budget { max: 9 }", ["4:1", "fidelity { min: 1", "--budget"]),
        ("fidelity { max: 9 reduction: 3 }", ["4:19", "'reduction_factor'"]),
        (EPOCHS + 'pruner: "median"', ["fidelity and pruner exclude each other", "5:1"]),
        (EPOCHS + 'constraint { name: "gb" max: 1 }', ["constraint"]),
        (EPOCHS + 'objective { name: "a" } objective { name: "b" }', ["objective"]),
    ],
)
def test_a_wrong_block_is_an_error_with_its_line(
    tmp_path: Path, block: str, facts: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, HEAD + LR + block + "\n")
    assert all(fact in str(caught.value) for fact in facts), caught.value


def test_other_rungs_are_another_search(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    open_study(load(tmp_path, HEAD + LR + EPOCHS), url)
    with pytest.raises(StudyMismatch) as caught:
        open_study(load(tmp_path, HEAD + LR + "fidelity { max: 9 }\n"), url)
    assert "rungs at 1, 3, 9, 27, 81 epochs" in str(caught.value)
