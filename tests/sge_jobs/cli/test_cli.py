"""The commands without a real cell: input, tables, output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sge_jobs.cli import run
from sge_jobs.cli.gpus import GpuRow, gpu_rows
from sge_jobs.cli.main import COMMANDS, main
from sge_jobs.cli.output import ago, table
from sge_jobs.cli.owners import others_than_root
from sge_jobs.cli.setup import read_counts
from sge_jobs.errors import InputError
from sge_jobs.gpu_state import GpuStatus, GpuUse, Intruder, Share, encode
from sge_jobs.model import Host, JobStatus, QueuedJob
from sge_jobs.queue.queue import Queue
from sge_jobs.resources import read_duration
from tests.sge_jobs.fake_gridengine import FakeGridEngine


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGridEngine:
    made = FakeGridEngine(tmp_path / "cell")
    monkeypatch.setenv("PATH", f"{made.programs}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return made


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--version") == 0
    assert re.fullmatch(r"sge-jobs \d+\.\d+\S*\n", capsys.readouterr().out)


def status_of(*argv: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    return caught.value.code


def test_submit_queues_a_job_and_prints_its_number(
    cell: FakeGridEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--gpus=2", "--log=new dir/log", "--env=A=b c", "--", "sh", "-c", "echo $A; exit 3"]
    assert status_of("submit", *argv) == 0
    id = capsys.readouterr().out.strip()
    assert cell.jobs()[id]["gpus"] == "2"
    assert cell.run(id) == 3
    assert (tmp_path / "new dir" / "log").read_text() == "b c\n"


@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_a_job_that_is_interrupted_while_it_is_queued_is_ended(
    cell: FakeGridEngine, number: str
) -> None:
    qsub = cell.programs / "qsub"
    qsub.rename(cell.programs / "the-qsub")
    qsub.write_text(f'#!/bin/sh\nkill -{number} $PPID\nexec "${{0%/*}}/the-qsub" "$@"\n')
    qsub.chmod(0o755)
    argv = [sys.executable, "-m", "sge_jobs", "run", "--", "true"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == {"INT": 130, "TERM": 143}[number], done.stderr
    with cell.state() as state:
        assert [call[0] for call in state["calls"]] == ["qsub", "qdel"]
    assert cell.jobs() == {}


def test_a_job_without_a_record_may_have_one_elsewhere(
    cell: FakeGridEngine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "_RECORD_S", 0.0)
    monkeypatch.setattr(run, "_LOG_S", 0.0)
    monkeypatch.setattr(Queue, "jobs", lambda self, user=None: [])
    assert status_of("run", "--", "true") == 1
    assert "qacct -j 1" in capsys.readouterr().err


def test_a_job_whose_output_nobody_reads_any_more_is_ended(
    cell: FakeGridEngine, tmp_path: Path
) -> None:
    (tmp_path / "n.o1").write_text("words\n")
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, "-m", "sge_jobs", "run", "--name=n", "--", "yes"]
    done = subprocess.run(argv, check=False, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 1, done.stderr
    with cell.state() as state:
        assert state["calls"][-1] == ["qdel", "1"]
    assert cell.jobs() == {}


def test_a_log_that_is_out_of_reach_ends_nothing(
    cell: FakeGridEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queue, "jobs", lambda self, user=None: [])
    (tmp_path / "n.o1").mkdir()  # stands for a file server that does not answer
    cell.record("1", exit_status=4)
    with cell.state() as state:
        state["records"][0]["end_time"] = "Sat Nov 21 19:41:12 2026"
    assert status_of("run", "--name=n", "--", "true") == 4


def test_a_program_keeps_options_that_are_its_own(
    cell: FakeGridEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("submit", "--dry-run", "--", "train", "--gpus=8", "--", "-n") == 0
    out = capsys.readouterr().out
    assert "exec -- train --gpus=8 -- -n\n" in out
    assert "-l gpu=" not in out
    assert cell.jobs() == {}


def test_a_dry_run_prints_what_a_shell_can_run(
    cell: FakeGridEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--dry-run", "--tasks=1-3", "--log=a b", "--", "printf", "%s", "it's $HOME"]
    assert status_of("submit", *argv) == 0
    subprocess.run(["bash", "-c", capsys.readouterr().out], check=True, capture_output=True)
    ((_, job),) = cell.jobs().items()
    environment = {**os.environ, "SGE_TASK_ID": "2"}
    subprocess.run(["bash"], check=True, input=job["script"].encode(), env=environment)
    assert (tmp_path / "a b.2").read_text() == "it's $HOME"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["submit", "--time=soon", "--", "x"], "--time=soon: "),
        (["submit", "--memory=8", "--", "x"], "--memory=8: "),
        (["submit", "--log=.", "--", "x"], "--log=. "),
        (["submit", "--concurrent=2", "--", "x"], "tasks"),
        (["submit", "--env=NO_SUCH_VARIABLE", "--", "x"], "--env=NO_SUCH_VARIABLE: "),
        (["submit", "--tasks=all", "--", "x"], "'all'"),
        (["submit", "--qsub=-m 'a", "--", "x"], "--qsub=-m 'a: No closing quotation"),
        (["submit", "--directory=/nope", "--", "x"], "--directory=/nope: "),
        (["run", "--directory=/etc/passwd", "--", "x"], "--directory=/etc/passwd: "),
        (["submit", "--gpus=-1", "--", "x"], "-1"),
        (["setup", "--gpus=many"], "--gpus=many: "),
        (["setup", "--files=/nonexistent"], "/nonexistent/gpu-starter "),
    ],
)
def test_wrong_input_is_named_with_exit_code_2(
    cell: FakeGridEngine, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert status_of(*argv) == 2
    assert said in capsys.readouterr().err
    assert cell.jobs() == {}


def test_a_silent_master_is_reported_with_its_fix(
    cell: FakeGridEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    cell.go_down()
    assert status_of("gpus") == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert "error: commlib error: got select error" in error
    assert "systemctl restart gridengine-master" in error


def test_a_directory_closed_to_users_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = tmp_path / "closed"
    (closed / "node").mkdir(parents=True)
    for name in ("gpu-starter", "gpu-sensor"):
        (closed / "node" / name).touch(0o755)
    closed.chmod(0o700)
    assert status_of("setup", f"--files={closed / 'node'}") == 2
    assert f"{closed / 'node' / 'gpu-starter'}: " in capsys.readouterr().err


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_setup_names_who_can_change_what_root_will_run(tmp_path: Path) -> None:
    for part in ("", "a", "a/sge_jobs", "a/sge_jobs/node", "a/sge_jobs/node/__pycache__"):
        (tmp_path / part).mkdir(mode=0o755, exist_ok=True)
    files = [tmp_path / "a/sge_jobs" / name for name in ("node/gpu-sensor", "gpu_state.py")]
    for file in files:
        file.touch(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "a/sge_jobs")
    node = tmp_path / "link" / "node"
    assert others_than_root(node) == []
    os.chown(files[0], 4321, 0)
    os.chown(tmp_path / "a", 0, 4321)
    (tmp_path / "a").chmod(0o775)
    assert others_than_root(node) == ["4321", "group 4321"]
    for path in (tmp_path / "a", node / "__pycache__", files[1]):
        mode = path.stat().st_mode
        path.chmod(0o777)
        with pytest.raises(InputError, match=f"chmod o-w .*{path.name}"):
            others_than_root(node)
        path.chmod(mode)
    (tmp_path / "a").chmod(0o1777)
    assert others_than_root(node) == ["4321"]


def test_status_and_gpus_show_hosts_and_jobs(
    cell: FakeGridEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    status_of("submit", "--gpus=3", "--name=a trial", "--", "true")
    cell.set("1", state="r", host="node1")
    capsys.readouterr()
    assert status_of("status") == 0
    out = capsys.readouterr().out
    assert "node1  0/4    3/4   8      0.50  ok" in out
    assert "1    a_trial-" in out
    assert status_of("gpus", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in rows] == ["held", "held", "held", "free"]
    assert status_of("status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["jobs"][0]["status"] == "running"


JOB = QueuedJob(
    id="7",
    task="3",
    name="trial",
    owner="alice",
    state="r",
    status=JobStatus.RUNNING,
    host="node1.example.org",
    since=100.0,
    gpus=1,
)


def test_a_sensor_tells_which_gpu_and_who_else_is_on_it() -> None:
    use = GpuUse(
        index=1,
        uuid="GPU-b",
        status=GpuStatus.HELD,
        job="7",
        task="3",
        user="alice",
        since=90,
        intruders=(Intruder(42, "python", foreign=True), Intruder(43, "sh")),
    )
    free = GpuUse(index=0, uuid="GPU-a")
    host = Host(name="node1", reachable=True, gpus=2, gpu_state=encode([free, use]))
    first, second = gpu_rows([host], [JOB])
    assert first == GpuRow(host="node1", index=0, uuid="GPU-a", status="free")
    foreign, left = second.processes
    assert foreign.startswith("42 python (")
    assert left.startswith("43 sh (")
    assert foreign.partition(" (")[2] != left.partition(" (")[2]
    assert second == GpuRow(
        host="node1",
        index=1,
        uuid="GPU-b",
        status="held",
        job="7",
        task="3",
        share=1.0,
        name="trial",
        user="alice",
        since=90.0,
        processes=(foreign, left),
    )


def test_a_shared_gpu_has_a_row_for_each_of_its_jobs() -> None:
    shares = (Share("7", "3", 250), Share("8", "", 500))
    use = GpuUse(
        index=0, uuid="GPU-a", status=GpuStatus.SHARED, job="7", user="alice", shares=shares
    )
    rows = gpu_rows([Host(name="node1", reachable=True, gpu_state=encode([use]))], [JOB])
    assert [(row.status, row.job, row.task, row.share, row.name) for row in rows] == [
        ("shared", "7", "3", 0.25, "trial"),
        ("shared", "8", "", 0.5, ""),
    ]


def test_without_a_sensor_gpus_are_counted() -> None:
    host = Host(name="node1", reachable=True, gpus=2)
    held, free = gpu_rows([host], [JOB])
    assert (held.job, held.index, held.status) == ("7", None, "held")
    assert free == GpuRow(host="node1", status="free")


def test_nothing_is_known_of_a_gpu_whose_host_does_not_answer() -> None:
    state = encode([GpuUse(index=0, uuid="GPU-a")])
    for known in (state, ""):
        (row,) = gpu_rows([Host(name="n", reachable=False, gpus=1, gpu_state=known)], [])
        assert row.status == "unknown"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400), ("1:30:00", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


def test_gpu_counts_by_host() -> None:
    assert read_counts(["8", "node007=4"]) == {"": 8, "node007": 4}
    with pytest.raises(InputError):
        read_counts(["node007=-1"])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59, "59s"), (190, "3m10s"), (7380, "2h3m"), (90000, "1d1h")],
)
def test_ages(seconds: float, shown: str) -> None:
    assert ago(1000.0, 1000.0 + seconds) == shown
    assert ago(0, 5) == ""


def test_a_table_is_as_wide_as_its_longest_words() -> None:
    assert table(("A", "B"), [("long", ""), ("", "x")]) == "A     B\nlong\n      x"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_help_shows_lines_to_type(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(name, "--help") == 0
    out = capsys.readouterr().out
    assert out.count(f"sge-jobs {name}", out.index("Examples:")) >= 2


def test_scripts_prints_paths_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("scripts") == 0
    names = capsys.readouterr().out.split()
    assert "gpu_selftest" in names
    for name in names:
        assert status_of("scripts", name) == 0
        assert Path(capsys.readouterr().out.strip()).is_file()
    assert status_of("scripts", "nope") == 2


def test_the_module_is_the_command() -> None:
    argv = [sys.executable, "-m", "sge_jobs", "--help"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert "sge-jobs run --gpus=1" in done.stdout
