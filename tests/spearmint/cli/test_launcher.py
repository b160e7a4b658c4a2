"""Trials in several processes: what config.pb and the options set, and a whole search."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spearmint.config import load_experiment
from spearmint.controller.submission import prepare_folder
from spearmint.drivers.queue import QueueHost, room_for
from spearmint.drivers.warm_starts import WarmStarts
from spearmint.layout import Layout, write_json
from spearmint.model import Trial, TrialState
from spearmint.resources import Resources
from tests.commands import spearmint
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment
from tests.spearmint.trial.ranks.ranks import STAND_IN, processes_of
from tests.spearmint.trial.ranks.ranks import Trial as RankTrial

TORCHRUN = ONE_FLOAT + 'launcher: "torchrun"\n'


@pytest.mark.parametrize(
    ("lines", "processes"),
    [
        ("", None),
        ('launcher: "torchrun"', 1),
        ('launcher: "TORCHRUN" resources { gpus: 4 }', 4),
        ('launcher: "torchrun" resources { gpus: 0.5 }', 1),
        ('launcher: "torchrun" resources { gpus: 0 } processes: 3', 3),
    ],
)
def test_a_launcher_starts_a_process_for_each_gpu(
    make_experiment: MakeExperiment, lines: str, processes: int | None
) -> None:
    experiment = load_experiment(make_experiment(config=ONE_FLOAT + lines).config)
    layout = Layout(experiment.directory)
    layout.jobs.mkdir()
    trial = Trial(id=1, state=TrialState.RUNNING, params={"x": (0.5,)})
    folder = prepare_folder(experiment, layout, trial, "key")
    assert json.loads(folder.spec.read_text()).get("processes") == processes


@pytest.mark.parametrize(
    ("config", "options", "facts"),
    [
        (TORCHRUN.replace("PYTHON", "SHELL"), (), ["launcher", "SHELL"]),
        (ONE_FLOAT + "processes: 2\n", (), ["processes", 'launcher: "torchrun"']),
        (ONE_FLOAT, ("--processes=2",), ["--processes", "--launcher"]),
        (ONE_FLOAT, ("--launcher=mpirun",), ["mpirun", "torchrun"]),
    ],
)
def test_settings_without_effect_are_refused(
    make_experiment: MakeExperiment, config: str, options: tuple[str, ...], facts: list[str]
) -> None:
    experiment = make_experiment(config=config)
    (experiment.root / "trial.sh").write_text("echo 1 > $SPEARMINT_RESULT\n")
    done = experiment.run(*options)
    assert done.returncode == 2, done.stderr
    for fact in facts:
        assert fact in done.stderr


@pytest.mark.parametrize(
    ("lines", "options", "facts"),
    [
        ("resources { nodes: 2 }", (), ["nodes: 2", 'launcher: "torchrun"']),
        ('launcher: "torchrun" resources { nodes: 2 }', (), ["local", "SLURM", "SGE"]),
        ('launcher: "torchrun"', ("--nodes=2", "--driver=HTCONDOR"), ["--nodes", "SLURM, SGE"]),
        ('launcher: "torchrun"', ("--nodes=2", "--driver=SGE"), ["--pe"]),
        ('launcher: "torchrun"', ("--nodes=0", "--driver=SLURM"), ["0"]),
    ],
)
def test_several_hosts_need_a_launcher_and_a_queue_that_can(
    make_experiment: MakeExperiment, lines: str, options: tuple[str, ...], facts: list[str]
) -> None:
    experiment = make_experiment(config=f"{ONE_FLOAT}{lines}\n")
    done = experiment.run(*options, "--dry-run")
    assert done.returncode == 2, done.stderr
    for fact in facts:
        assert fact in done.stderr


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--driver=SLURM", "--slots=2"), ("--nodes=2 --ntasks-per-node=1 --cpus-per-task=2",)),
        (("--driver=SGE", "--pe=two", "--slots=4"), ("-pe two 8", "gpu=1")),
        (("--driver=SGE", "--pe=two"), ("-pe two 2", "gpu=4")),
    ],
)
def test_a_job_requests_the_same_on_each_host(
    make_experiment: MakeExperiment, options: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    config = ONE_FLOAT + 'launcher: "torchrun" resources { gpus: 4 nodes: 2 }\n'
    done = make_experiment(config=config).run(*options, "--dry-run")
    assert done.returncode == 0, done.stderr
    for part in parts:
        assert part in done.stdout


@pytest.mark.parametrize(
    ("rooms", "nodes", "trials"), [((4, 4), 2, 4), ((4, 1), 2, 1), ((3, 2, 1), 2, 3), ((9,), 2, 0)]
)
def test_each_trial_has_different_hosts(rooms: tuple[int, ...], nodes: int, trials: int) -> None:
    hosts = [QueueHost(name=str(i), slots=room) for i, room in enumerate(rooms)]
    assert room_for(hosts, Resources(gpus=0, nodes=nodes)) == trials


def test_a_pruned_trial_leaves_no_process(tmp_path: Path) -> None:
    wait = """
import time
from spearmint import report
from torch.distributed import all_reduce

def main(job_id, params):
    report(0, all_reduce(3.0))
    all_reduce(1.0) if job_id == 1 else time.sleep(600)
    return 1.0
"""
    (tmp_path / "trial.py").write_text(wait)
    (tmp_path / "config.pb").write_text(TORCHRUN + "processes: 2\n")
    options = ["--method=RandomChooser", "--pruner=threshold"]
    environment = {**os.environ, "PYTHONPATH": str(STAND_IN)}
    limits = ["--pruner-args=upper=9", "--max-finished-jobs=1"]
    first = spearmint(*options, *limits, tmp_path, env=environment)
    assert "trial 1: 1 " in first.stdout, first.stdout + first.stderr
    limits = ["--pruner-args=upper=5", "--max-finished-jobs=2"]
    second = spearmint(*options, *limits, tmp_path, env=environment)
    assert "trial 2: pruned" in second.stdout, second.stdout + second.stderr
    for trial_id in (1, 2):
        assert not processes_of(Layout(tmp_path).folder(trial_id))


def test_no_process_imports_for_trials_that_torchrun_starts(tmp_path: Path) -> None:
    folder = RankTrial(tmp_path, "").folder
    starts = WarmStarts()
    assert starts.process_for(folder, dict(os.environ)) is None
    write_json(folder.spec, {**json.loads(folder.spec.read_text()), "processes": 0})
    started = starts.process_for(folder, dict(os.environ))
    assert started is not None
    started.close()
