"""The driver for Slurm on a real cluster with slurmdbd: accounts, QOS, and how jobs ended."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.on_hosts.slurm_searches import SlurmSearch
from tests.testbed.cell import UID
from tests.testbed.slurm import SlurmCluster
from tests.testbed.slurm_accounting import ACCOUNT, ONE_JOB, QOS
from tests.waiting import until

pytestmark = pytest.mark.slurm

MakeSearch = Callable[..., SlurmSearch]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with SlurmCluster(2, is_debian_13=True) as made:
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


def test_an_account_and_a_qos(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    search = make_search(trials=4, steps=2)
    search.start(f"--project={ACCOUNT}", "-l", f"qos={QOS}").end()
    search.assert_complete()
    asked = ["sacct", "-nPX", "--format=Account,QOS"]
    shown = cluster.checked(*asked, uid=UID).split()
    assert set(shown) == {f"{ACCOUNT}|{QOS}"}


def test_an_account_that_the_user_does_not_have(make_search: MakeSearch) -> None:
    output = make_search(trials=2).start("--project=theirs").end(1)
    assert "Invalid account" in output
    output = make_search(trials=2).start("-l", "qos=vip").end(1)
    assert "Invalid qos" in output


def test_a_limit_of_one_job_at_a_time(make_search: MakeSearch) -> None:
    search = make_search(trials=3, steps=2)
    output = search.start("-l", f"qos={ONE_JOB}", "--queue-ahead=2").end()
    search.assert_complete()
    runs = sorted(search.runs(), key=lambda run: run.began)
    assert all(a.seen <= b.began for a, b in itertools.pairwise(runs))
    assert "error" not in output.lower()


def test_a_job_that_slurmctld_has_forgotten(cluster: SlurmCluster, make_search: MakeSearch) -> None:
    search = make_search(trials=1, steps=3000)
    controller = search.start("--walltime=9m", "--queue-ahead=1")
    search.wait_running(1)
    pid = cluster.master.process("bin/spearmint --driver=SLURM")
    os.kill(pid, signal.SIGSTOP)
    (id,) = search.jobs_in("RUNNING")
    cluster.checked("scontrol", "update", f"JobId={id}", "EndTime=now")
    until(lambda: cluster.run("scontrol", "show", "job", id).returncode, 120, 0.5)
    os.kill(pid, signal.SIGCONT)
    controller.wait_for("timed out")
    assert next(trial["state"] for trial in search.trials()) == "broken"
