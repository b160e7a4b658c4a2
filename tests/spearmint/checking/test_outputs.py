"""A late result of a search with constraints keeps them."""

from __future__ import annotations

from pathlib import Path

import optuna

from spearmint.checking.trials import _late
from spearmint.config.reader import load_experiment
from spearmint.layout import Layout, write_json
from spearmint.model import Result
from spearmint.store.opening import open_study
from spearmint.store.session import Session

CONFIG = """language: PYTHON
name: "mine"
variable { name: "x" type: FLOAT min: 0 max: 1 }
constraint { name: "memory_gb" max: 80 }
"""


def test_a_late_result_keeps_its_constraints(tmp_path: Path) -> None:
    (tmp_path / "config.pb").write_text(CONFIG)
    experiment = load_experiment(tmp_path / "config.pb")
    study = open_study(experiment, f"sqlite:///{tmp_path}/trials.db")
    study.use(optuna.samplers.RandomSampler(seed=1))
    session = Session(experiment, Layout(tmp_path), study)
    failed = study.break_(study.ask(), Result(value=None, reason="lost"), "")
    folder = session.layout.folder(failed.id)
    folder.path.mkdir(parents=True)
    found = {"value": 0.5, "constraints": {"memory_gb": 90.0}, "key": study.key(failed)}
    write_json(folder.result, found)
    (problem,) = _late(session, failed, folder)
    assert problem.repair is not None
    problem.repair()
    added = study.trials()[-1]
    assert (added.value, added.constraints) == (0.5, {"memory_gb": 90.0})
    assert not added.is_feasible
