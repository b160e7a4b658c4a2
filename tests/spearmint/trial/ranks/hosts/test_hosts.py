"""A trial on two hosts, by stand-ins for torch and for the commands of Slurm."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from spearmint.trial.ranks.ends import HostEnds, result_of
from spearmint.trial.ranks.records import RankEnd
from spearmint.trial.reporting import read_reports
from tests.spearmint.trial.ranks.hosts.queue_commands import HOSTS, write_commands
from tests.spearmint.trial.ranks.ranks import STUBBORN, Trial
from tests.waiting import until

SUM = """
import json, os, pathlib
from spearmint import report
from torch.distributed import all_reduce

def main(job_id, params):
    rank = int(os.environ["RANK"])
    total = all_reduce(10.0 ** rank)
    report(3, total + rank)
    names = ("WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "SPEARMINT_RANK", "MASTER_ADDR",
             "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME", "MINE", "SPEARMINT_PLACE")
    known = {name: os.environ.get(name) for name in names}
    (pathlib.Path(os.environ["SPEARMINT_TRIAL_DIR"]) / f"{rank}.json").write_text(json.dumps(known))
    print(f"hello from {rank}")
    return total if rank == 0 else None
"""


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """The environment of the runner; agents keep their files in a folder of this test."""
    (tmp_path / "tmp").mkdir()
    return {**write_commands(tmp_path / "bin"), "TMPDIR": str(tmp_path / "tmp")}


def test_ranks_of_two_hosts_add_up(tmp_path: Path, variables: dict[str, str]) -> None:
    trial = Trial(tmp_path, SUM, nodes=2)
    result, output = trial.run(**variables, CUDA_VISIBLE_DEVICES="0,1", MINE="x y")
    assert result.get("value") == 1111.0, (result, output)
    assert read_reports(trial.folder.reports) == {3: 1111.0}
    known = [json.loads((trial.folder.files / f"{rank}.json").read_text()) for rank in range(4)]
    assert [each["SPEARMINT_RANK"] for each in known] == ["0", "1", "2", "3"]
    assert [each["LOCAL_RANK"] for each in known] == ["0", "1", "0", "1"]
    assert [each["GROUP_RANK"] for each in known] == ["0", "0", "1", "1"]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in known] == ["0,1", "0,1", "7", "7"]
    for name, value in (("WORLD_SIZE", "4"), ("MINE", "x y"), ("SPEARMINT_PLACE", None)):
        assert {each[name] for each in known} == {value}
    assert {each["MASTER_ADDR"] for each in known} == {"127.0.0.1"}
    assert {each["GLOO_SOCKET_IFNAME"] for each in known} == {"lo"}  # towards the other host
    assert all(f"hello from {rank}" in output for rank in range(4))
    assert not trial.processes()
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        ("if rank == 3: raise ValueError('bad')", f"rank 3 of 4 on {HOSTS[1]}: ValueError: bad"),
        ("if rank == 0: os.kill(os.getpid(), 9)", f"rank 0 of 4 on {socket.gethostname()} was kil"),
    ],
)
def test_one_line_tells_which_rank_failed_on_which_host(
    tmp_path: Path, variables: dict[str, str], fail: str, reason: str
) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", fail), nodes=2)
    result, output = trial.run(**variables)
    assert result["reason"].startswith(reason), (result, output)
    assert not trial.processes()


@pytest.mark.parametrize(
    ("part", "number", "said"),
    [
        ("bin/srun", 9, "the ranks on 127.0.0.1 ended"),
        ("hosts.agent", 9, "the ranks on 127.0.0.1 ended"),
        ("hosts.agent", 15, "the ranks on 127.0.0.1 were ended by signal 15 (SIGTERM)"),
        ("trial.runner", 9, None),
    ],
)
def test_nothing_is_left_on_any_host_when_a_process_is_killed(
    tmp_path: Path, variables: dict[str, str], part: str, number: int, said: str | None
) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", "time.sleep(600)"), nodes=2)
    runner = trial.start(**variables)
    until(lambda: trial.is_ready() or runner.poll() is not None)
    found = trial.processes(part)
    os.kill(runner.pid if said is None else found[0].pid, number)
    output = runner.communicate()[0]
    until(lambda: not trial.processes())
    if said is None:
        assert not trial.folder.result.exists()
    else:
        reason = json.loads(trial.folder.result.read_text())["reason"]
        assert said in reason, output


@pytest.mark.parametrize(
    ("srun", "reason"),
    [
        (
            "echo 'srun: error: not allowed' >&2; exit 3",
            f"srun started no ranks on {HOSTS[1]} (exit code 3)",
        ),
        (
            'shift 7; NO_LIBCUDA=1 exec "$@"',
            f"cannot start the ranks on {HOSTS[1]}: ImportError: libcuda.so.1",
        ),
    ],
)
def test_a_host_where_no_rank_starts_is_named(
    tmp_path: Path, variables: dict[str, str], srun: str, reason: str
) -> None:
    (tmp_path / "bin" / "srun").write_text(f"#!/bin/sh\n{srun}\n")
    trial = Trial(tmp_path, SUM, nodes=2)
    result, output = trial.run(**variables)
    assert result["reason"].startswith(reason), (result, output)
    assert ("not allowed" in output) == ("not allowed" in srun)
    assert not trial.processes()


LATE = """
import os, pathlib, time
from torch.distributed import all_reduce

def main(job_id, params):
    rank = int(os.environ["RANK"])
    all_reduce(1.0)
    returned = pathlib.Path(FOLDER) / "ranks"
    while rank > 1 and not all((returned / f"{n}.outcome.json").exists() for n in (0, 1)):
        time.sleep(0.05)
    if rank > 1:
        time.sleep(1.0)  # torchrun needs less to see that its ranks have ended
        os.environ["WORLD_SIZE"] = "1"
        all_reduce(1.0)
    return 7.0
"""


def test_the_store_outlasts_the_ranks_of_the_first_host(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    folder = tmp_path / "jobs" / "00000007"
    trial = Trial(tmp_path, LATE.replace("FOLDER", repr(str(folder))), nodes=2)
    result, output = trial.run(**variables)
    assert result.get("value") == 7.0, (result, output)
    assert not trial.processes()


def test_an_agent_without_a_sign_of_life_ends_its_ranks(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", "time.sleep(600)"), nodes=2)
    runner = trial.start(**variables, SILENT_STEPS="20")
    until(lambda: trial.is_ready() or runner.poll() is not None)
    there = {each.pid for each in trial.processes("ranks.guard", "SLURM_STEP")}
    (guard,) = (each for each in trial.processes("ranks.guard") if each.pid not in there)
    guard.suspend()  # as a host without network
    try:
        assert trial.processes("ranks.rank", "SLURM_STEP")
        until(lambda: not trial.processes("ranks.rank", "SLURM_STEP"))
    finally:
        guard.resume()
    output = runner.communicate()[0]
    assert not trial.processes(), output


def test_a_job_with_another_number_of_hosts_says_so(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    result, _ = Trial(tmp_path, SUM, nodes=3).run(**variables)
    assert "needs 3 hosts, and its job has 2" in result["reason"]
    (tmp_path / "b").mkdir()
    result, _ = Trial(tmp_path / "b", SUM, nodes=2).run(PATH=variables["PATH"])
    assert "no hosts of Slurm" in result["reason"]


GONE = {"reason": "RuntimeError: Connection closed by peer [10.0.0.2]:3000"}


def _died(rank: int, status: int, ended: float = 1.0) -> RankEnd:
    return RankEnd(rank, {}, status, ended)


@pytest.mark.parametrize(
    ("here", "there", "named"),
    [
        (
            HostEnds("a", (_died(0, -9, 2.0),)),
            HostEnds("b", (_died(1, -9, 1.0),)),
            "rank 1 of 2 on b",
        ),
        (HostEnds("a", (_died(0, -15),)), HostEnds("b", lost=(1,)), "rank 1 of 2 on b"),
        (HostEnds("a", late=(_died(0, 1),)), HostEnds("b", failure="gone"), "gone"),
        (HostEnds("a", (RankEnd(0, GONE, 0, 1.0),)), HostEnds("b", failure="signal 15"), "signal"),
        (HostEnds("a", (RankEnd(0, {"value": 1.0}, 0, 1.0),)), HostEnds("b"), "torchrun ended"),
    ],
)
def test_the_cause_is_named_and_not_what_followed(
    here: HostEnds, there: HostEnds, named: str
) -> None:
    there = HostEnds.read(json.loads(json.dumps(there.as_json())))
    with pytest.raises(Exception, match=named):
        result_of([here, there], 2)
