"""The real torchrun and gloo on the processors of this machine."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import psutil
import pytest

from spearmint.trial.reporting import read_reports
from tests.spearmint.trial.ranks.hosts.queue_commands import write_commands
from tests.spearmint.trial.ranks.ranks import Trial
from tests.waiting import until

FOUND = importlib.util.find_spec("torch")
pytestmark = pytest.mark.skipif(FOUND is None, reason="PyTorch is not installed")
SITE = Path(FOUND.origin or "").parents[1] if FOUND else None

GLOO = """
import os, pathlib, time
import torch
import torch.distributed as dist
from spearmint import report

def main(job_id, params):
    dist.init_process_group("gloo")
    total = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(total)
    report(0, total.item() + dist.get_rank())
    (pathlib.Path(os.environ["SPEARMINT_TRIAL_DIR"]) / f"ready{dist.get_rank()}").touch()
    WAIT
    dist.destroy_process_group()
    return total.item()
"""


def test_ranks_add_up(tmp_path: Path) -> None:
    result, output = Trial(tmp_path, GLOO.replace("WAIT", "")).run(SITE)
    assert result.get("value") == 3.0, (result, output)


def test_a_killed_rank_ends_all_and_nothing_listens_beyond_this_host(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    trial = Trial(tmp_path, GLOO.replace("WAIT", "time.sleep(600)"))
    runner = trial.start(SITE)
    until(lambda: trial.is_ready() or runner.poll() is not None, limit_s=300)
    found = trial.processes()
    listening = [
        each.laddr.ip
        for process in found
        for each in process.net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    if "master_listen_fd" in (torch.distributed.TCPStore.__init__.__doc__ or ""):
        assert set(listening) == {"127.0.0.1"}
    ranks = [each for each in trial.processes("ranks.rank") if each.environ()["RANK"] == "1"]
    os.kill(ranks[-1].pid, 9)  # the fork that calls main
    output = runner.communicate()[0]
    assert "rank 1 of 2 was killed" in trial.folder.result.read_text(), output
    assert not trial.processes()


def test_ranks_of_two_hosts_add_up(tmp_path: Path) -> None:
    variables = write_commands(tmp_path / "bin")
    trial = Trial(tmp_path, GLOO.replace("WAIT", ""), n=1, nodes=2)
    result, output = trial.run(SITE, **variables)
    assert result.get("value") == 3.0, (result, output)
    assert read_reports(trial.folder.reports) == {0: 3.0}
    assert not trial.processes()


@pytest.mark.parametrize("part", ["trial.runner", "ranks.guard", "ranks.torchrun"])
def test_nothing_is_left_when_a_process_is_killed(tmp_path: Path, part: str) -> None:
    trial = Trial(tmp_path, GLOO.replace("WAIT", "time.sleep(600)"))
    runner = trial.start(SITE)
    until(lambda: trial.is_ready() or runner.poll() is not None, limit_s=300)
    victim = runner.pid if part == "trial.runner" else trial.processes(part)[0].pid
    os.kill(victim, 9)
    runner.communicate()
    until(lambda: not trial.processes())
