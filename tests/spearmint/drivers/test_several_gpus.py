"""A trial with four GPUs on each queue; ``tests/on_hosts`` has real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from sge_jobs import qsub_argv
from spearmint.config import load_experiment
from spearmint.drivers.celery.job import described
from spearmint.drivers.htcondor.description import submit_description
from spearmint.drivers.queue import SubmitSpec
from spearmint.drivers.sge.spec import job_spec
from spearmint.drivers.slurm.options import sbatch_argv
from spearmint.errors import InputError
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment


@pytest.fixture
def trial(make_experiment: MakeExperiment) -> SubmitSpec:
    config = make_experiment(config=ONE_FLOAT + "resources { gpus: 4 }\n").config
    return SubmitSpec(
        token="0123456789ab",  # noqa: S106
        label="net-7",
        argv=("true",),
        directory=Path("/data"),
        output=Path("/dev/null"),
        environment={},
        resources=load_experiment(config).resources,
    )


def test_each_queue_gives_a_trial_four_gpus_of_one_host(trial: SubmitSpec) -> None:
    argv = qsub_argv(job_spec(trial))
    assert argv[argv.index("gpu=4") - 1] == "-l"
    assert {"--gres=gpu:4", "--nodes=1"} <= set(sbatch_argv(trial))
    assert "request_gpus = 4\n" in submit_description(trial)


def test_workers_of_celery_refuse_it_before_anything_runs(trial: SubmitSpec) -> None:
    with pytest.raises(InputError, match=r"Celery .* 4\n.*--gpus=1"):
        described(trial, fence_s=1.0, is_sent=False)
