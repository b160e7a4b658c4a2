"""The walk of one trial and the glossary name files, functions and values that exist."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from spearmint.config.reader import load_experiment
from spearmint.store.distributions import distributions
from spearmint.trial.languages import to_arrays, to_entries

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "why" / "one_trial.rst").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")


def named(page: str) -> list[tuple[str, str]]:
    return re.findall(r"``?([\w/]+\.py):([\w.]+)``?", page)


STEPS = named(PAGE)


@pytest.mark.parametrize(("path", "name"), [*STEPS, *named(GLOSSARY)])
def test_each_step_is_there(path: str, name: str) -> None:
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        assert found, f"{path} has no {part}"
        body = found[0].body


def test_the_walk_enters_every_room_on_the_way() -> None:
    rooms = {str(Path(path).parent) for path, _ in STEPS}
    spearmint = ["config", "store", "controller", "choosers", "acquisition", "gp", "trial"]
    assert {"spearmint/drivers", "spearmint/drivers/sge", "pycuda_nn/layers"} <= rooms
    pycuda_nn = ["training", "backends", "cuda", "cuda/training", "cuda/step", "cuda/persistent"]
    assert {f"spearmint/{room}" for room in spearmint} <= rooms
    assert {"sge_jobs/queue", "sge_jobs/node/claim"} <= rooms
    assert {f"pycuda_nn/{room}" for room in pycuda_nn} <= rooms


def test_the_values_on_the_page_are_right() -> None:
    experiment = load_experiment(ROOT / "examples" / "digits" / "config.pb")
    lr = next(variable for variable in experiment.variables if variable.name == "lr")
    distribution = distributions((lr,))["lr"]
    assert str(distribution).startswith("FloatDistribution(high=0.5, log=True, low=0.001")
    assert "``FloatDistribution(0.001, 0.5, log=True)``" in PAGE
    assert f"{(0.001 * 0.5) ** 0.5:.4f}" in PAGE
    entries = to_entries((lr,), {"lr": (0.0317,)})
    assert f'"lr": {json.dumps(entries["lr"])}' in PAGE
    np.testing.assert_array_equal(to_arrays(entries)["lr"], [0.0317])
