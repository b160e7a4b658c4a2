"""The driver for Slurm on a real cluster, by an ordinary user."""

from __future__ import annotations

import itertools
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.on_hosts.batches import BATCHES, CONFIG_OF_BATCHES, assert_complete_in_batches
from tests.on_hosts.ranks_on_hosts import CODE as RANKS
from tests.on_hosts.ranks_on_hosts import CONFIG as RANKS_CONFIG
from tests.on_hosts.ranks_on_hosts import check_trials_on_two_hosts
from tests.on_hosts.searches import Controller
from tests.on_hosts.slurm_searches import SlurmSearch
from tests.testbed.cell import REPOSITORY, UID
from tests.testbed.slurm import SlurmCluster
from tests.waiting import until

pytestmark = pytest.mark.slurm

# The driver does the same with 24.11 as with 22.05, so what takes long runs on one of them.
on_one_version = pytest.mark.parametrize("cluster", [False], ids=["22.05"], indirect=True)

MakeSearch = Callable[..., SlurmSearch]

# Of a user who likes other formats, and of a job in which the command runs.
_OTHERS = {
    "SBATCH_PARTITION": "nowhere",
    "SBATCH_EXPORT": "NONE",
    "SBATCH_GRES": "gpu:9",
    "SBATCH_TIMELIMIT": "1",
    "SCANCEL_INTERACTIVE": "1",
    "SINFO_FORMAT": "%x",
    "SLURM_CLUSTERS": "elsewhere",
    "SLURM_CPUS_PER_TASK": "7",
    "SLURM_JOB_ID": "1",
    "SLURM_MEM_PER_NODE": "99999",
    "SLURM_NTASKS": "8",
    "SLURM_TIME_FORMAT": "%s",
    "SQUEUE_FORMAT2": "Name",
    "SQUEUE_STATES": "COMPLETED",
    "SQUEUE_USERS": "root",
}


@pytest.fixture(scope="module", params=[False, True], ids=["22.05", "24.11"])
def cluster(request: pytest.FixtureRequest) -> Iterator[SlurmCluster]:
    with SlurmCluster(is_debian_13=request.param) as made:
        yield made


@pytest.fixture
def make_search(cluster: SlurmCluster, request: pytest.FixtureRequest) -> Iterator[MakeSearch]:
    """Return a function that creates searches; repair the cluster at the end."""
    made: list[SlurmSearch] = []
    numbers = itertools.count()

    def make(**options: object) -> SlurmSearch:
        path = cluster.home / f"{request.node.name}-{next(numbers)}"
        made.append(SlurmSearch(cluster, path, **options))
        return made[-1]

    yield make
    for search in made:
        search.stop()
    cluster.heal()


def test_contract(cluster: SlurmCluster) -> None:
    suite = Path(__file__).with_name("contract_on_slurm.py").relative_to(REPOSITORY)
    pytest_ = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider"]
    argv = [*pytest_, f"--basetemp={cluster.home}/tmp", str(suite)]
    done = cluster.run("env", "-C", str(REPOSITORY), *argv, uid=UID, env=_OTHERS, timeout_s=1000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout


def test_controllers_and_slurmctld_are_killed(
    cluster: SlurmCluster, make_search: MakeSearch
) -> None:
    search = make_search(trials=24, steps=5)
    draw = random.Random(17)

    def start() -> Controller:
        controller = search.start("--queue-ahead=2")
        until(lambda: cluster.master.processes("bin/spearmint --driver=SLURM"), 30, 0.02)
        return controller

    for _ in range(2):  # before, during and after submissions
        controller = start()
        time.sleep(draw.uniform(0.2, 2))
        controller.kill()
    controller = start()
    search.wait_running()
    cluster.save_jobs(search.jobs_in("RUNNING")[0])
    cluster.kill("/usr/sbin/slurmctld")
    controller.wait_for("does not respond")
    controller.kill()
    cluster.start_controller()
    controller = start()
    time.sleep(draw.uniform(0.2, 2))
    controller.kill()
    start().end()
    search.assert_complete()
    assert {run.host for run in search.runs()} == set(cluster.names)


@on_one_version
def test_pilots_fork_their_trials(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    make_search(trials=100, steps=5).assert_pilots_fork()


@on_one_version
def test_jobs_of_several_trials(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    """A controller is killed, then a job is cancelled: what had ended stays."""
    config = CONFIG_OF_BATCHES
    search = make_search(trials=16, steps=20, hold_at=12, config=config, code=BATCHES)
    controller = search.start()
    search.wait_running(4)
    controller.kill()
    controller = search.start()
    for number in (2, 4):
        controller.wait_for(rf"trial {number}: 0\.", release=False)
    job = next(run.job for run in search.runs() if run.trial == 1)
    cluster.checked("scancel", job, uid=UID)
    controller.wait_for(r"trial 1 was lost", release=False)
    assert not re.search(r"trial [24] was lost", controller.end())
    assert_complete_in_batches(search)


@on_one_version
def test_a_host_is_lost(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    search = make_search(trials=6, steps=20, hold_at=3)
    controller = search.start()
    lost = next(run for run in search.wait_running(step=3) if run.host != "master")
    search.node(lost).kill()
    cluster.run("scontrol", "update", f"NodeName={lost.host}", "State=DOWN", "Reason=lost")
    search.release()

    def is_again() -> bool:
        search.restart_now()
        same = [run for run in search.runs() if run.trial == lost.trial]
        return any(run.first >= 3 and run.host != lost.host for run in same)

    until(is_again, 120, 0.3, progress=lambda: len(search.runs()))
    controller.end()
    search.assert_complete()


@on_one_version
def test_jobs_are_preempted(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    search = make_search(trials=6, steps=20, hold_at=3)
    controller = search.start()
    search.wait_running(step=3)
    sleep = "#!/bin/sh\nsleep 2\n"
    urgent = ["sbatch", "-p", "urgent", "-o", "/dev/null", "-D", "/", "--gres=gpu:2"]
    for _ in cluster.names:
        cluster.checked(*urgent, uid=UID, stdin=sleep)
    controller.wait_for("was preempted", release=False)
    until(lambda: search.restart_now() or len(search.runs()) > 6, 60, 0.3)
    until(
        lambda: search.restart_now() or not search.jobs_in("PENDING"),
        60,
        0.3,
        progress=lambda: len(search.runs()),
    )
    controller.end()
    search.assert_complete()
    assert any(run.first for run in search.runs() if run.value is not None)


def test_a_job_that_can_never_start(make_search: MakeSearch) -> None:
    search = make_search(trials=2)
    output = search.start("--queue=short", "--walltime=5m").end(1)
    assert "PartitionTimeLimit" in output
    assert not search.jobs_in("PENDING")
    output = search.start("--gpus=3").end(1)
    assert "node configuration is not available" in output


# Slurm rounds a limit up to a minute: the test ends the job earlier, in the way of the limit.
_WARNED = """
import os, signal, time

def main(job_id, params):
    signal.signal(signal.SIGUSR1, lambda *_: open({runs!r} + "/warned", "w").close())
    open({runs!r} + "/started", "w").close()
    for _ in range({steps}):
        time.sleep(0.1)
    return 1.0
"""


@on_one_version
def test_a_time_limit_with_a_warning(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    search = make_search(trials=1, steps=3000, code=_WARNED)
    warn = "--submit-option=--signal=B:USR1@59"
    controller = search.start("--walltime=9m", "--queue-ahead=1", warn)
    until(lambda: search.has("started"), 60, 0.1)
    (id,) = search.jobs_in("RUNNING")
    cluster.checked("scancel", "--batch", "--signal=USR1", id)  # as --signal=B:USR1@59 does
    until(lambda: search.has("warned"), 60, 0.1)
    cluster.checked("scontrol", "update", f"JobId={id}", "EndTime=now")
    controller.wait_for("timed out")
    assert next(trial["state"] for trial in search.trials()) == "broken"


@on_one_version
def test_a_held_job(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    search = make_search(trials=2, steps=3)
    controller = search.start("--submit-option=--hold", "-n", "2")
    said = controller.wait_for(r"Release it: (scontrol release \d+)")
    cluster.checked(*said[1].split(), uid=UID)
    said = controller.wait_for(rf"Release it: (scontrol release (?!{said[1].split()[2]})\d+)")
    cluster.checked(*said[1].split(), uid=UID)
    controller.end()
    search.assert_complete()


def test_the_ranks_of_a_trial_run_on_two_hosts(make_search: MakeSearch) -> None:
    search = make_search(trials=3, config=RANKS_CONFIG, code=RANKS)
    ranks = check_trials_on_two_hosts(search, "--gpus=2", "--slots=2")
    assert {each["gpus"] for each in ranks} == {"0,1"}
