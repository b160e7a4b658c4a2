"""A study with two numbers and a category, and what Optuna reads of it."""

from __future__ import annotations

from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial

from spearmint.choosers import GPEIOptChooser
from spearmint.config.reader import load_experiment
from spearmint.store.opening import open_study
from spearmint.store.study import Study

CONFIG = """language: PYTHON
name: "mine"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""


def opened(folder: Path, url: str, config: str = CONFIG) -> Study:
    (folder / "config.pb").write_text(config)
    study = open_study(load_experiment(folder / "config.pb"), url)
    study.use(GPEIOptChooser(seed=1))
    return study


def point(x: float = 0.5) -> dict[str, object]:
    return {"X[0]": x, "X[1]": 0.25, "act": "tanh"}


def stored(url: str) -> list[FrozenTrial]:
    """Return all trials as Optuna reads them."""
    return optuna.load_study(study_name="mine", storage=RDBStorage(url)).get_trials()
