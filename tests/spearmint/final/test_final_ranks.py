"""Final trainings in several processes, by the stand-in for torch of the tests of ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import commands
from tests.spearmint.conftest import ONE_FLOAT, ExperimentDir, MakeExperiment
from tests.spearmint.trial.ranks.ranks import STAND_IN

CODE = """
import os
from torch.distributed import all_reduce

def main(job_id, params):
    return all_reduce(1.0)

def final(job_id, params, model_dir):
    rank = int(os.environ["RANK"])
    total = all_reduce(10.0 ** rank)
    if os.path.exists("broken.txt") and rank == 1:
        raise ValueError("bad data")
    if rank == 0:
        (model_dir / "weights.txt").write_text(str(total))
        return {"value": total, "ranks": int(os.environ["WORLD_SIZE"])}
"""


def final(experiment: ExperimentDir, *options: str) -> list[dict]:
    done = commands.spearmint("final", "--json", *options, experiment.root)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("lines", "options"),
    [('launcher: "torchrun" processes: 2\n', ()), ("", ("--launcher=torchrun", "--processes=2"))],
)
def test_a_final_training_has_the_processes_of_the_trial(
    make_experiment: MakeExperiment,
    monkeypatch: pytest.MonkeyPatch,
    lines: str,
    options: tuple[str, ...],
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    experiment = make_experiment(CODE, config=ONE_FLOAT + lines)
    done = experiment.run("--max-finished-jobs=1", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = final(experiment)
    assert row["metrics"]["value"] == 11.0
    assert row["metrics"]["ranks"] == 2
    assert (Path(row["folder"]) / "files/weights.txt").read_text() == "11.0"
    (experiment.root / "broken.txt").touch()
    (row,) = final(experiment, "--retrain")
    assert row["failure"].startswith("rank 1 of 2: ValueError: bad data")
    assert not row["folder"]
