"""Jobs on a real Grid Engine cell of three hosts with two GPUs each."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.on_hosts.cell_commands import COMMAND, command, door, listed, start
from tests.testbed.cell import UID, USER, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge


@pytest.fixture(autouse=True)
def idle(cell: Cell) -> None:
    """Delete all jobs before each test."""
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
    assert abs(float(record["ended"]) - time.time()) < 1800  # in this time zone


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
    return JobSpec(name=name, argv=("sleep", "3000"), directory=Path("/tmp"), **more)
ids = [q.submit(spec("run", resources=Resources(gpus=2, slots=2, walltime_s=5000)))]
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
    until(lambda: listed(cell).get(stop) == "s", 30)
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
    until(lambda: listed(cell).get(error) != "Eqw", 30)
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
    until(lambda: list(listed(cell).values()).count("r") == 4, 30, 0.2)  # they wait for the log
    time.sleep(1)
    for node in cell.hosts:
        node.remount(cell.shared, "rw")
    cell.wait_idle()
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3"]
    assert len(ids) == 4  # type: ignore[arg-type]


def test_a_log_that_can_never_be_opened_ends_in_state_e_with_its_reason(cell: Cell) -> None:
    code = """
import sge_jobs.queue.qsub as made
made._KEEP_TRYING = made._KEEP_TRYING.replace("{1..30}", "1")
show(q.submit(JobSpec(name="n", argv=("echo",), directory=Path("/"), log=Path("/nope/log"))))
"""
    (id,) = door(cell, code)
    until(lambda: "E" in listed(cell).get(str(id), ""), 60, 0.2)
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


def test_defaults_that_a_user_has_for_qsub_do_not_get_in_the_way(cell: Cell) -> None:
    directory = cell.home / "r b:c'd\"e$f,ü=;x"
    directory.mkdir(exist_ok=True)
    directory.chmod(0o777)
    (cell.home / ".sge_request").write_text("-b y -V\n-o /tmp\n")
    try:
        done = command(cell, "run", f"--directory={directory}", "--", "sh", "-c", "pwd; exit 3")
    finally:
        (cell.home / ".sge_request").unlink()
    assert (done.returncode, done.stdout) == (3, f"{directory}\n"), done.stderr


def test_defaults_that_a_user_has_for_qstat_hide_no_job(cell: Cell) -> None:
    running = cell.submit("#!/bin/sh\nsleep 3000\n", "-l", "hostname=node001")
    held = cell.submit("#!/bin/sh\n", "-h")
    until(lambda: listed(cell).get(running) == "r", 30, 0.2)
    (cell.home / ".sge_qstat").write_text("-s r -f\n")
    try:
        (rows,) = door(cell, "show(q.jobs())")
    finally:
        (cell.home / ".sge_qstat").unlink()
    assert [(row["id"], row["host"]) for row in rows] == [  # type: ignore[attr-defined]
        (running, "node001"),
        (held, ""),
    ]


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
    running = start(cell, "run", "--", "sh", "-c", "echo started; exec sleep 3000")
    # Grid Engine lists a job as running before its process exists.
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    pid = cell.master.process("-m sge_jobs run")
    os.kill(pid, number)
    out, err = running.communicate(timeout=300)
    assert (running.returncode, out) == (128 + number, ""), err
    cell.wait_idle()


@pytest.mark.slow
def test_run_outlives_a_master_that_goes_and_comes_back(cell: Cell) -> None:
    go = cell.home / "go"
    script = 'until [ -e "$0" ]; do sleep 0.2; done; echo done; exit 5'
    running = start(cell, "run", "--", "sh", "-c", script, str(go))
    until(lambda: "r" in listed(cell).values(), 30, 0.2)
    cell.kill("sge_qmaster")
    refused = command(cell, "gpus")
    assert refused.returncode == 1
    assert "systemctl restart gridengine-master" in refused.stderr
    assert "gridengine-master" in command(cell, "check").stdout
    time.sleep(3)
    cell.start_master()
    go.touch()
    out, err = running.communicate(timeout=300)
    # "done" once: the restart of the master did not rerun the job.
    assert (running.returncode, out) == (5, "done\n"), err
    assert "error: commlib error" in err


def test_gpus_and_status_tell_who_has_what(cell: Cell) -> None:
    until(lambda: cell.run("qhost", "-F", "gpu_state").stdout.count("gpu_state=") == 3, 60, 0.5)
    options = ("--gpus=1", "--tasks=1-4", "--name=région", "--log=logs/x")
    submitted = command(cell, "submit", *options, "--", "sleep", "3000")
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
