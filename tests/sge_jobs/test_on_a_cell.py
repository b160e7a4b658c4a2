"""The queue's door and the sge-jobs command on a real cell of three hosts with two GPUs each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ..testbed.cell import UID, USER, Cell
from ..testbed.fabric import until

pytestmark = pytest.mark.sge

COMMAND = (sys.executable, "-m", "sge_jobs")
DOOR = """\
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from sge_jobs.errors import SgeJobsError
from sge_jobs.model import *
from sge_jobs.queue import Queue
q = Queue()
def plain(one): return getattr(one, "value", None) or asdict(one)
def show(value): print(json.dumps(value, default=plain))
"""


def door(cell: Cell, code: str) -> list[object]:
    """Run ``code`` with ``q``, a queue of the user, on the master; return what it showed."""
    out = cell.checked(sys.executable, "-c", DOOR + code, uid=UID)
    return [json.loads(line) for line in out.splitlines()]


def command(
    cell: Cell, *arguments: str, uid: int = UID, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run sge-jobs in the user's home."""
    script = f'cd {cell.home} && exec "$@"'
    return cell.run("sh", "-c", script, "sh", *COMMAND, *arguments, uid=uid, timeout_s=timeout_s)


def start(cell: Cell, *arguments: str) -> subprocess.Popen[str]:
    argv = ["sh", "-c", f'cd {cell.home} && exec "$@"', "sh", *COMMAND, *arguments]
    return subprocess.Popen(
        cell.enter(argv, uid=UID),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def listed(cell: Cell) -> dict[str, str]:
    """Return the states of the jobs there are, by number."""
    rows = cell.run("qstat", "-u", "*").stdout.splitlines()[2:]
    return {row.split()[0]: row.split()[4] for row in rows}


@pytest.fixture(autouse=True)
def idle(cell: Cell) -> None:
    """Begin without jobs."""
    cell.run("qdel", "-u", "*")
    cell.wait_idle()


def test_a_job_in_a_directory_of_any_name_ends_up_in_qacct(cell: Cell) -> None:
    directory = cell.home / "a b:c'd\"e$f,ü=;x"
    code = f"""
directory = Path({str(directory)!r}); directory.mkdir(exist_ok=True)
script = 'printf "%s|" "$@" "$V" "$PWD" "$JOB_NAME"; exit 3'
show(q.submit(JobSpec(
    name="1é/ø:x",
    argv=("sh", "-c", script, "sh", "it's", "$HOME", "é\\n#$ -N x"),
    directory=directory,
    log=directory / "lög",
    environment={{"V": "`a` \\\\"}},
)))
"""
    (id,) = door(cell, code)
    cell.wait_idle()
    # The file system of this machine shows what the host wrote.
    words = (directory / "lög").read_text().split("|")
    assert words[:5] == ["it's", "$HOME", "é\n#$ -N x", "`a` \\", str(directory)]
    assert words[5].startswith("_1e_x-")
    (record,) = _records(cell, str(id))
    assert (record["owner"], record["failed"], record["exit_status"]) == (USER, 0, 3)
    assert abs(float(record["ended"]) - time.time()) < 60


def _records(cell: Cell, id: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    def there() -> bool:
        found[:] = door(cell, f"show(q.accounting({id!r}))")[0]  # type: ignore[assignment]
        return bool(found)

    until(there, 30, 0.2)
    return found


def test_each_state_has_its_name_and_qdel_ends_them_all(cell: Cell) -> None:
    code = """
def spec(name, **more):
    return JobSpec(name=name, argv=("sleep", "60"), directory=Path("/tmp"), **more)
ids = [q.submit(spec("run", resources=Resources(gpus=2, slots=2, walltime_s=100)))]
ids.append(q.submit(spec("hold", resources=Resources(options=("-h",)))))
ids.append(q.submit(spec("stop")))
ids.append(q.submit(JobSpec(name="err", argv=("true",), directory=Path("/nope"))))
ids.append(q.submit(spec("arr", tasks="1-9:2", concurrent_tasks=1)))
show(ids)
"""
    (ids,) = door(cell, code)
    run, hold, stop, error, array = map(str, ids)  # type: ignore[call-overload]
    until(lambda: listed(cell).get(stop) == "r" and listed(cell).get(error) == "Eqw", 30, 0.2)
    cell.checked("qmod", "-sj", stop)
    until(lambda: listed(cell)[stop] == "s", 10)
    rows, hosts, reason = door(
        cell, f"show(q.jobs()); show(q.hosts()); show(q.error_reason({error!r}))"
    )
    states = {(row["id"], row["task"]): row["status"] for row in rows}  # type: ignore[attr-defined]
    assert states == {
        (run, ""): "running",
        (hold, ""): "held",
        (stop, ""): "suspended",
        (error, ""): "error",
        (array, "1"): "running",
        (array, "3-9:2"): "pending",
    }
    assert sum(host["gpus_used"] for host in hosts) == 2  # type: ignore[attr-defined]
    assert [host["gpus"] for host in hosts] == [2, 2, 2]  # type: ignore[attr-defined]
    assert "chdir to /nope" in str(reason)
    door(cell, f"q.clear_error([{error!r}, '99'])")
    until(lambda: listed(cell)[error] != "Eqw", 10)
    door(cell, f"q.delete({[*ids, '99']!r}); q.delete({[*ids, '99']!r})")  # type: ignore[misc]
    cell.wait_idle()


def test_a_shared_directory_that_is_read_only_for_a_moment_costs_no_job(cell: Cell) -> None:
    for node in cell.hosts:
        node.remount(cell.shared, "ro")
    log = cell.home / "log"
    code = f"""
paths = {{"directory": Path("/tmp"), "log": Path({str(log)!r})}}
show([q.submit(JobSpec(name="n", argv=("echo", str(n)), **paths)) for n in range(4)])
"""
    (ids,) = door(cell, code)
    until(lambda: list(listed(cell).values()).count("r") == 4, 30, 0.2)  # and cannot open the log
    time.sleep(3)
    for node in cell.hosts:
        node.remount(cell.shared, "rw")
    cell.wait_idle()
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3"]
    assert len(ids) == 4  # type: ignore[arg-type]


def test_a_log_that_can_never_be_opened_ends_in_state_e_with_its_reason(cell: Cell) -> None:
    code = """
import sge_jobs.qsub as made
made._KEEP_TRYING = made._KEEP_TRYING.replace("{1..30}", "1")
show(q.submit(JobSpec(name="n", argv=("echo",), directory=Path("/"), log=Path("/nope/log"))))
"""
    (id,) = door(cell, code)
    until(lambda: "E" in listed(cell)[str(id)], 60, 0.2)
    assert "exit_status of job start = 100" in cell.run("qstat", "-j", str(id)).stdout
    assert "/nope/log: No such file or directory" in (cell.home / f"n.o{id}").read_text()
    door(cell, f"q.delete([{id!r}])")
    cell.wait_idle()


def test_the_cell_is_found_without_a_variable_of_it(cell: Cell) -> None:
    argv = ("env", "-u", "SGE_ROOT", "-u", "SGE_CELL", "-u", "SGE_ARCH", *COMMAND, "status")
    assert "node002" in cell.checked(*argv, uid=UID)


def test_run_shows_the_output_and_ends_as_the_job_does(cell: Cell) -> None:
    script = "echo $CUDA_VISIBLE_DEVICES; echo err >&2; sleep 1; echo more; exit 7"
    done = command(cell, "run", "--gpus=1", "--name=1 é", "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    gpu, *rest = done.stdout.splitlines()
    assert gpu.startswith("GPU-")
    assert rest == ["err", "more"]


def test_run_says_why_a_job_failed(cell: Cell) -> None:
    done = command(cell, "run", "--time=2s", "--", "sleep", "60")
    assert done.returncode == 137
    assert "h_rt" in done.stderr
    done = command(cell, "run", "--directory=/nope", "--", "true")
    assert (done.returncode, "/nope" in done.stderr) == (2, True)
    cell.master.run("mkdir", "--mode=755", "/only-here")
    elsewhere = ("-l", "hostname=node001", "--directory=/only-here")
    done = command(cell, "run", *elsewhere, "--", "true")
    assert done.returncode == 1
    assert "can't chdir to /only-here" in done.stderr
    assert listed(cell) == {}
    done = command(cell, "run", "--queue=none.q", "--", "true")
    assert done.returncode == 1
    assert 'unknown queue "none.q"' in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_ends_its_job_when_it_is_interrupted(cell: Cell, number: int) -> None:
    running = start(cell, "run", "--", "sleep", "60")
    until(lambda: "r" in listed(cell).values(), 30, 0.2)
    pid = cell.master.process("-m sge_jobs run")
    os.kill(pid, number)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (1, ""), err
    assert "Ending job" in err
    cell.wait_idle()


@pytest.mark.slow
def test_run_outlives_a_master_that_goes_and_comes_back(cell: Cell) -> None:
    running = start(cell, "run", "--", "sh", "-c", "sleep 6; echo done; exit 5")
    until(lambda: "r" in listed(cell).values(), 30, 0.2)
    cell.kill("sge_qmaster")
    refused = command(cell, "gpus")
    assert refused.returncode == 1
    assert "does not answer" in refused.stderr
    assert "gridengine-master" in command(cell, "check").stdout
    time.sleep(3)
    cell.start_master()
    out, err = running.communicate(timeout=120)
    # Once: a master that was away is no reason to run jobs again.
    assert (running.returncode, out) == (5, "done\n"), err
    assert "still waiting" in err


def test_gpus_and_status_tell_who_has_what(cell: Cell) -> None:
    until(lambda: cell.run("qhost", "-F", "gpu_state").stdout.count("gpu_state=") == 3, 60, 0.5)
    options = ("--gpus=1", "--tasks=1-4", "--name=région", "--log=logs/x")
    submitted = command(cell, "submit", *options, "--", "sleep", "60")
    id = submitted.stdout.strip()

    def rows() -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(command(cell, "gpus", "--json").stdout)
        return [row for row in found if row["status"] == "held"]

    until(lambda: len(rows()) == 4, 40, 0.5)
    held = rows()
    assert {row["job"] for row in held} == {id}
    assert {row["task"] for row in held} == {"1", "2", "3", "4"}
    assert {row["user"] for row in held} == {USER}
    assert len({row["uuid"] for row in held}) == 4
    assert str(held[0]["name"]).startswith("region-")
    shown = command(cell, "gpus").stdout.splitlines()
    assert len(shown) == 1 + 6
    status = json.loads(command(cell, "status", "--json").stdout)
    assert sum(host["gpus_used"] for host in status["hosts"]) == 4
    assert {job["task"] for job in status["jobs"]} == {"1", "2", "3", "4"}
    assert f"{id}.4" in command(cell, "status").stdout
    assert sorted(path.name for path in (cell.home / "logs").iterdir()) == [
        f"x.{task}" for task in range(1, 5)
    ]
    cell.checked("qdel", id)
    until(lambda: not rows(), 40, 0.5)


def problems(cell: Cell, uid: int = UID) -> str:
    done = command(cell, "check", uid=uid)
    assert done.returncode == int("Nothing is wrong." not in done.stdout), done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("harm", "mend", "said"),
    [
        ("qmod -d all.q@node001", "qmod -e all.q@node001", "all.q@node001 is disabled"),
        ("qconf -ds master", "qconf -as master", "master may submit no jobs"),
        (
            "qconf -rattr queue starter_method NONE all.q",
            "python -m sge_jobs setup",
            "no starter",
        ),
        (
            "qconf -mattr exechost complex_values gpu=3 node002",
            "python -m sge_jobs setup --gpus=node002=2",
            "node002 has 2 GPUs, the cell gives 3",
        ),
        (
            "qconf -rattr queue load_thresholds load_avg=0.000001 all.q",
            "qconf -rattr queue load_thresholds NONE all.q",
            "all.q@node001 is in alarm",
        ),
    ],
)
def test_check_finds_what_was_broken_and_setup_mends(
    cell: Cell, harm: str, mend: str, said: str
) -> None:
    until(lambda: "Nothing is wrong." in problems(cell), 60, 0.5)
    cell.checked("sh", "-c", harm)
    until(lambda: said in problems(cell), 40, 0.5)
    cell.checked("sh", "-c", mend)
    until(lambda: "Nothing is wrong." in problems(cell), 60, 0.5)


def test_setup_changes_nothing_twice_and_keeps_what_a_site_set(cell: Cell) -> None:
    assert command(cell, "setup", uid=0).stdout == "Nothing to change.\n"
    cell.qconf("-mattr", "exechost", "complex_values", "h_vmem=8G", "node001")
    cell.qconf("-rattr", "queue", "load_thresholds", "load_avg=1000", "all.q")
    before = _everything(cell)
    done = command(cell, "setup", "--gpus=4", uid=0)
    assert "host node001: gpu=2 (change it by --gpus node001=4)" in done.stdout
    assert "queue all.q: load_thresholds load_avg=1000 (here: NONE)" in done.stdout
    assert _everything(cell) == before
    assert "Nothing was changed." in command(cell, "setup", "-n", "--gpus=node001=4", uid=0).stdout
    assert _everything(cell) == before
    command(cell, "setup", "--gpus=node001=4", uid=0)
    shown = cell.qconf("-se", "node001").split("load_values")[0]
    assert sorted(shown.split("complex_values")[1].strip().split(",")) == ["gpu=4", "h_vmem=8G"]
    refused = command(cell, "setup", "--gpus=node001=2", uid=UID)
    assert refused.returncode == 1
    assert "Run it as a manager of the cell" in refused.stderr
    command(cell, "setup", "--gpus=node001=2", uid=0)
    cell.qconf("-rattr", "queue", "load_thresholds", "NONE", "all.q")


def _everything(cell: Cell) -> str:
    texts = [cell.qconf(option) for option in ("-sc", "-ssconf", "-sconf", "-spl")]
    hosts = [cell.qconf("-se", name).split("load_values")[0] for name in cell.names]
    return "".join([*texts, *hosts, cell.qconf("-sq", "all.q")])


@pytest.mark.slow
def test_a_lost_host_is_told_and_its_jobs_can_be_forgotten(cell: Cell) -> None:
    (id,) = door(
        cell,
        "show(q.submit(JobSpec(name='n', argv=('sleep', '600'), directory=Path('/tmp'), "
        "rerunnable=False, resources=Resources(requests=('hostname=node002',)))))",
    )
    until(lambda: listed(cell).get(str(id)) == "r", 30, 0.2)
    node = cell.fabric.nodes["node002"]
    cell.lose(node)
    until(lambda: "host node002 does not answer" in problems(cell), 60, 0.5)
    door(cell, f"q.delete([{id!r}])")
    cell.checked(
        sys.executable,
        "-c",
        f"from sge_jobs.queue import Queue; Queue().delete(['{id}', '99'], force=True)",
    )
    cell.wait_idle()
    cell.boot_again(node)
    until(lambda: "Nothing is wrong." in problems(cell), 60, 0.5)


@pytest.mark.slow
def test_setup_on_running_hosts_takes_no_job_away() -> None:
    with Cell(2, setup=False) as made:
        # This machine is busy: with the packages' threshold the queue would be in alarm.
        made.qconf("-rattr", "queue", "load_thresholds", "NONE", "all.q")
        ids = [made.submit("#!/bin/sh\nsleep 600\n", "-r", "y") for _ in range(2)]
        until(lambda: set(listed(made).values()) == {"r"}, 60, 0.5)
        started = made.run("qstat", "-u", "*").stdout
        done = command(made, "setup", uid=0, timeout_s=200)  # the sensors tell how many GPUs
        assert "complex_values gpu=2 node001" in done.stdout, done.stderr
        assert "max_unheard 00:00:20" in " ".join(made.qconf("-sconf").split())
        time.sleep(25)  # longer than the new max_unheard
        assert made.run("qstat", "-u", "*").stdout == started
        assert set(listed(made)) == set(ids)
        assert command(made, "setup", uid=0).stdout == "Nothing to change.\n"
