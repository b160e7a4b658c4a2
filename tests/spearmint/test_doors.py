"""Public names of each package: all exist, and importing the package stays cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

HEAVY = {"optuna", "numpy", "scipy", "sqlalchemy", "rich", "matplotlib"}
ROOMS = [
    "acquisition", "checking", "choosers", "choosers.testing", "config", "controller",
    "generations", "gp", "html_report", "importing", "requests", "store", "transfer", "view",
]  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_each_name_of_a_door_is_there(room: str) -> None:
    door = import_module(f"spearmint.{room}")
    for name in door.__all__:
        assert not isinstance(getattr(door, name), ModuleType), f"{name} is a module"
    with pytest.raises(AttributeError, match=f"'spearmint.{room}' .*'nothing'"):
        _ = door.nothing


def test_doors_and_nouns_load_no_heavy_library() -> None:
    rooms = ", ".join(f"spearmint.{room}" for room in ROOMS if room != "choosers.testing")
    nouns = "spearmint.model, spearmint.formatting, spearmint.errors, spearmint.plugins"
    limits = "from spearmint.controller import SearchLimits, StudyLimits, StudyCounts"
    names = "from spearmint.choosers import CHOOSERS, parse_method_args; parse_method_args('a=1')"
    code = f"import sys, {rooms}, {nouns}\n{limits}\n{names}\nprint(*({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
