from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from spearmint.trial.ranks import guard, torchrun
from spearmint.trial.ranks.records import Records, first_failure
from spearmint.trial.reporting import read_reports
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
    names = ("OMP_NUM_THREADS", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "SPEARMINT_RANK")
    known = {name: os.environ.get(name) for name in names}
    (pathlib.Path(os.environ["SPEARMINT_TRIAL_DIR"]) / f"{rank}.json").write_text(json.dumps(known))
    return total if rank == 0 else None
"""


def test_rank_0_reports_and_returns_for_all(tmp_path: Path) -> None:
    trial = Trial(tmp_path, SUM, n=3)
    result, output = trial.run(OMP_NUM_THREADS="8")
    assert result.get("value") == 111.0, (result, output)
    assert read_reports(trial.folder.reports) == {3: 111.0}
    known = [json.loads((trial.folder.files / f"{rank}.json").read_text()) for rank in range(3)]
    assert [each["SPEARMINT_RANK"] for each in known] == ["0", "1", "2"]
    assert {each["OMP_NUM_THREADS"] for each in known} == {"2"}
    assert {each["GLOO_SOCKET_IFNAME"] for each in known} == {"lo"}
    assert not trial.processes()


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        ("if rank == 1: raise ValueError('bad batch')", "rank 1 of 2: ValueError: bad batch"),
        ("if rank == 1: os.kill(os.getpid(), 9)", "rank 1 of 2 was killed by signal 9 (SIGKILL)"),
        ("if rank == 0: os.abort()", "rank 0 of 2 was killed by signal 6 (SIGABRT)"),
        ("if rank == 1: os._exit(3)", "rank 1 of 2 exited with status 3"),
        ("if rank == 0: sys.exit('no')", "rank 0 of 2: called sys.exit('no')"),
    ],
)
def test_one_line_tells_which_rank_failed_and_all_end(
    tmp_path: Path, fail: str, reason: str
) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", fail))
    result, output = trial.run()
    assert result["reason"].startswith(reason), (result, output)
    assert not trial.processes()


@pytest.mark.parametrize("rank", [0, 1])
def test_nothing_is_left_when_one_process_is_killed(tmp_path: Path, rank: int) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", "time.sleep(600)"))
    runner = trial.start()
    until(trial.is_ready)
    kept = [each for each in trial.processes("ranks.rank") if each.environ()["RANK"] == str(rank)]
    next(each for each in kept if "ranks.torchrun" in " ".join(each.parent().cmdline())).kill()
    output = runner.communicate()[0]
    assert f"rank {rank} of 2" in trial.folder.result.read_text(), output
    assert not trial.processes()


@pytest.mark.parametrize("part", ["ranks.guard", "ranks.torchrun"])
def test_nothing_is_left_when_the_launcher_is_killed(tmp_path: Path, part: str) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", "time.sleep(600)"))
    runner = trial.start()
    until(trial.is_ready)
    trial.processes(part)[0].kill()
    output = runner.communicate()[0]
    assert "torchrun" in trial.folder.result.read_text(), output
    assert not trial.processes()


@pytest.mark.parametrize("number", [9, 15])
def test_nothing_is_left_when_the_runner_is_killed(tmp_path: Path, number: int) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", "time.sleep(600)"))
    runner = trial.start()
    until(trial.is_ready)
    os.killpg(runner.pid, number)
    until(lambda: not trial.processes())
    runner.communicate()
    assert not trial.folder.result.exists()


def test_ranks_end_when_runner_and_guard_are_killed(tmp_path: Path) -> None:
    trial = Trial(tmp_path, STUBBORN.replace("FAIL", "time.sleep(600)"))
    runner = trial.start()
    until(trial.is_ready)
    for process in (trial.processes("ranks.guard")[0], runner):
        os.kill(process.pid, 9)
    until(lambda: not trial.processes("spearmint.trial"))
    for left in trial.processes("sleep"):  # only their session could find them
        left.kill()
    runner.communicate()


def test_two_trials_of_a_host_do_not_meet(tmp_path: Path) -> None:
    trials = [Trial(tmp_path, SUM, trial_id=trial_id) for trial_id in (1, 2)]
    runners = [trial.start() for trial in trials]
    outputs = [runner.communicate()[0] for runner in runners]
    for trial, output in zip(trials, outputs, strict=True):
        assert '"value": 11.0' in trial.folder.result.read_text(), output
    ports = {json.loads((t.folder.files / "0.json").read_text())["MASTER_PORT"] for t in trials}
    assert len(ports) == 2


def test_ranks_may_take_time_to_exit_after_all_returned(tmp_path: Path) -> None:
    records = Records(Trial(tmp_path, SUM).folder)
    records.clear()
    assert guard._patience(records, 2) is None
    records.write_outcome(1, {"rank": 1}, when=1.0)
    assert guard._patience(records, 2) is None
    records.write_outcome(0, {"value": 1.0}, when=2.0)
    assert guard._patience(records, 2) == guard._EXIT_S
    records.write_outcome(1, {"reason": "ValueError"}, when=3.0)
    assert guard._patience(records, 2) == guard._TELL_S


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_rank_that_failed_because_of_another_is_not_named(
    tmp_path: Path, order: tuple[int, int]
) -> None:
    records = Records(Trial(tmp_path, SUM).folder)
    records.clear()
    when = dict(zip(order, (1.0, 2.0), strict=True))
    records.write_outcome(0, {"reason": "RuntimeError: Connection reset by peer"}, when=when[0])
    records.write_end(1, -9, when=when[1])
    failed = first_failure(records.ends(2))
    assert failed is not None
    assert failed.rank == 1


@pytest.mark.parametrize(
    ("status", "when", "named"), [(-9, 2.0, 1), (3, 2.0, 1), (-15, 2.0, 0), (-9, 3.1, 0)]
)
def test_a_late_keeper_tells_which_rank_failed_unless_the_guard_ended_it(
    tmp_path: Path, status: int, when: float, named: int
) -> None:
    records = Records(Trial(tmp_path, SUM).folder)
    records.clear()
    records.write_outcome(0, {"reason": "RuntimeError: Connection reset by peer"}, when=1.0)
    records.write_stop([], when=1.5, killed=3.0)
    records.write_end(1, status, when=when)
    failed = first_failure([*records.ends(2, before=1.5), *records.late_deaths(2)])
    assert failed is not None
    assert failed.rank == named


def test_a_rank_that_dies_by_its_handler_of_sigterm_does_not_hide_the_lost_one(
    tmp_path: Path,
) -> None:
    records = Records(Trial(tmp_path, SUM).folder)
    records.clear()
    records.write_stop([0], when=1.5, killed=3.0)
    records.write_end(1, 1, when=2.0)  # os._exit(1) in the handler
    assert records.late_deaths(2) == []


@pytest.mark.parametrize(("zero", "options"), [(0, []), (None, ["--redirects=2:3", "--tee=2:3"])])
def test_torchrun_that_does_not_know_its_default_gets_another(
    monkeypatch: pytest.MonkeyPatch, zero: int | None, options: list[str]
) -> None:
    kinds = SimpleNamespace(from_str=lambda text: zero)
    monkeypatch.setitem(sys.modules, torchrun._PROCESSES, SimpleNamespace(Std=kinds))
    assert torchrun._shown("2") == options


def test_without_torch_the_reason_says_so(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("PyTorch is installed")
    result, _ = Trial(tmp_path, SUM).run(None)
    assert result["reason"] == "ModuleNotFoundError: No module named 'torch'"


def test_memory_of_a_gpu_that_one_rank_lacks_is_told(tmp_path: Path) -> None:
    fail = "if rank == 1: raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')"
    result, output = Trial(tmp_path, STUBBORN.replace("FAIL", fail)).run()
    assert result.get("out_of_gpu_memory") is True, output
    assert result["reason"].startswith("rank 1 of 2: RuntimeError: CUDA out of memory")
