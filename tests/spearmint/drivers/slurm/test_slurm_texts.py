"""The options, the script and the answers of Slurm; tests/on_hosts/test_slurm.py has a real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spearmint.drivers import DriverSettings, EndedRun, QueueHost, QueueJobState
from spearmint.drivers.queue import SubmitSpec
from spearmint.drivers.queue_commands import job_environment
from spearmint.drivers.slurm import Slurm
from spearmint.drivers.slurm.commands import ask
from spearmint.drivers.slurm.ends import parse_accounting, parse_job, run_of_job
from spearmint.drivers.slurm.listing import parse_hosts, parse_jobs
from spearmint.drivers.slurm.options import partition_of, sbatch_argv
from spearmint.drivers.slurm.reasons import obstacle_of
from spearmint.drivers.slurm.script import job_script
from spearmint.errors import DriverError, DriverUnreachable, InputError, QueueFull
from spearmint.resources import Resources

TOKEN = "0123456789ab"  # noqa: S105


def spec(avoid: tuple[str, ...] = (), label: str = "branin-7", **need: object) -> SubmitSpec:
    return SubmitSpec(
        token=TOKEN,
        label=label,
        argv=(sys.executable, "-c", "print('a  b')"),
        directory=Path("/tmp"),
        output=Path("/dev/null"),
        environment={},
        avoid=avoid,
        resources=Resources(**need),
    )


@pytest.mark.parametrize(
    ("need", "options"),
    [
        ({}, ["--gres=gpu:1", "--cpus-per-task=1", "--requeue"]),
        ({"gpus": 2, "slots": 8}, ["--gres=gpu:2", "--cpus-per-task=8"]),
        ({"walltime_s": 61}, ["--time=0:02:00"]),
        ({"walltime_s": 90000}, ["--time=25:00:00"]),
        ({"queue": "gpu", "project": "lab"}, ["--partition=gpu", "--account=lab"]),
        ({"qos": "long", "constraint": "a100|h100"}, ["--qos=long", "--constraint=a100|h100"]),
        ({"memory": "16G", "requests": ("licenses=x:1",)}, ["--mem=16G", "--licenses=x:1"]),
        ({"options": ("-x", "a"), "avoid": ("b", "c")}, ["--exclude=a,b,c"]),
        ({"requests": ("exclude=a",), "avoid": ("b",)}, ["--exclude=a,b"]),
        ({"avoid": ("b",)}, ["--exclude=b"]),
    ],
)
def test_resources_are_options(need: dict[str, object], options: list[str]) -> None:
    argv = sbatch_argv(spec(**need))
    assert set(options) <= set(argv)
    assert argv[-1] == options[-1] or "avoid" not in need


@pytest.mark.parametrize(
    "need",
    [{"gpus": 0}, {"requests": ("gres=gpu:a100:1",)}, {"options": ("-G", "2")}, {"gpus": 0.0}],
)
def test_gpus_are_requested_once(need: dict[str, object]) -> None:
    assert "--gres=gpu:1" not in sbatch_argv(spec(**need))


@pytest.mark.parametrize(
    ("need", "word"),
    [
        ({"gpus": 0.25}, "0.25"),
        ({"parallel_environment": "smp"}, "--pe"),
        ({"options": ("--array=1-9",)}, "--array"),
        ({"options": ("-M", "all")}, "-M"),
        ({"requests": ("wrap=sleep 1",)}, "--wrap"),
        ({"requests": ("h_vmem 1G",)}, "h_vmem"),
    ],
)
def test_what_slurm_cannot_do_is_refused(need: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        sbatch_argv(spec(**need))


@pytest.mark.parametrize("label", ["branin-7", "a b;$(x)\n-é", "", "-" * 300])
def test_the_name_of_a_job_ends_with_its_token(label: str) -> None:
    (name,) = [word for word in sbatch_argv(spec(label=label)) if word.startswith("--job-name=")]
    assert name.rpartition("-")[2] == TOKEN
    assert name.isascii()
    assert name.isprintable()
    assert len(name) < 200
    assert " " not in name


def test_partitions_of_options_count() -> None:
    assert partition_of(Resources(queue="a", options=("-p", "b"))) == "b"
    assert partition_of(Resources(queue="a")) == "a"


def run_script(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash"],
        check=False,
        input=script,
        text=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd()), **variables},
    )


def job(tmp_path: Path, code: str, **need: object) -> SubmitSpec:
    made = spec(**need)
    return SubmitSpec(
        token=TOKEN,
        label="x",
        argv=(sys.executable, "-c", code),
        directory=tmp_path,
        output=tmp_path / "a log's $(name)",
        environment={"VALUE": 'it\'s $HOME\nand "more"', "SPEARMINT_RERUN_EXIT_CODE": "99"},
        resources=made.resources,
    )


def test_the_script_runs_the_command_where_and_as_requested(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), repr(os.environ['VALUE']), os.environ['GPUS'])"
    made = job(tmp_path, code, setup=("export GPUS=[$CUDA_VISIBLE_DEVICES]; cd /",))
    assert run_script(job_script(made)).returncode == 0
    expected = f"{tmp_path} {made.environment['VALUE']!r}"
    assert made.output.read_text() == f"{expected} []\n"
    assert run_script(job_script(made), CUDA_VISIBLE_DEVICES="1").returncode == 0
    assert made.output.read_text() == f"{expected} []\n{expected} [1]\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 15)", -15),
    ],
)
def test_the_script_ends_as_the_command_does(tmp_path: Path, code: str, status: int) -> None:
    assert run_script(job_script(job(tmp_path, code))).returncode == status


def test_a_trial_that_must_run_again_is_requeued(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "scontrol"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit 1\n')
    fake.chmod(0o755)
    script = job_script(job(tmp_path, "raise SystemExit(99)"))
    path = f"{fake.parent}:{os.environ['PATH']}"
    assert run_script(script, SLURM_JOB_ID="17", PATH=path).returncode == 99
    assert (tmp_path / "asked").read_text() == "requeue 17\n"


def row(id: str, state: str, restarts: str, host: str, reason: str, name: str) -> str:
    return f"{id:24}{state:24}{restarts:12}{host:256}{reason:64}{name:256}"


@pytest.mark.parametrize(
    ("state", "restarts", "reason", "expected"),
    [
        ("PENDING", "0", "Priority", QueueJobState.PENDING),
        ("PENDING", "1", "Priority", QueueJobState.PENDING),
        ("PENDING", "0", "BeginTime", QueueJobState.PENDING),
        ("PENDING", "1", "BeginTime", QueueJobState.PREEMPTED),
        ("PENDING", "0", "JobHeldUser", QueueJobState.HELD),
        ("PENDING", "5", "JobHoldMaxRequeue", QueueJobState.HELD),
        ("PENDING", "0", "launch failed requeued held", QueueJobState.ERROR),
        ("CONFIGURING", "0", "None", QueueJobState.PENDING),
        ("RUNNING", "0", "None", QueueJobState.RUNNING),
        ("SUSPENDED", "0", "None", QueueJobState.SUSPENDED),
        ("COMPLETING", "0", "None", QueueJobState.ENDING),
        ("A_NEW_STATE", "0", "None", QueueJobState.RUNNING),
    ],
)
def test_states_of_jobs(state: str, restarts: str, reason: str, expected: QueueJobState) -> None:
    text = "\n".join(
        [
            "a line of a name that someone else chose",
            row("12", state, restarts, "node001", reason, f"b-7-{TOKEN}"),
            row("13_[1-4]", "PENDING", "0", "", "None", "an array | of é"),
        ]
    )
    found, other = parse_jobs(text)
    assert (found.id, found.token, found.state) == ("12", TOKEN, expected)
    assert (found.host, found.is_rerun) == ("node001", restarts != "0")
    assert other.token != TOKEN


def test_hosts_of_a_partition_that_accept_jobs() -> None:
    text = "\n".join(
        [
            "a|idle|4|gpu:2|normal*",
            "a|idle|4|gpu:2|all",
            "b|mixed|8|gpu:a100:2(S:0-1),gpu:v100:1(S:1),shard:8|normal*",
            "c|down*|8|gpu:2|normal*",
            "d|drained|8|gpu:2|normal*",
            "e|idle~|8|(null)|all",
            "f|allocated|8|gpu:a100:4(IDX:0-3)|all",
        ]
    )
    normal = [QueueHost(name="a", slots=4, gpus=2), QueueHost(name="b", slots=8, gpus=3)]
    assert parse_hosts(text, "") == normal
    assert [host.name for host in parse_hosts(text, "all")] == ["a", "e", "f"]
    assert parse_hosts(text, "normal,all")[-1].gpus == 4


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("PartitionTimeLimit", False),
        ("PartitionConfig", False),
        ("BadConstraints", False),
        ("InvalidQOS", False),
        ("InvalidAccount", False),
        ("QOSMaxWallDurationPerJobLimit", False),
        ("AssocMaxCpuPerJobLimit", False),
        ("DependencyNeverSatisfied", False),
        ("AssocGrpCpuLimit", True),
        ("AssocGrpCPUMinutesLimit", True),
        ("QOSGrpGRES", True),
        ("QOSMaxJobsPerUserLimit", True),
        ("ReqNodeNotAvail,_UnavailableNodes:node001", True),
        ("PartitionDown", True),
        *((waits, None) for waits in ("Resources", "Priority", "None", "BeginTime", "Licenses")),
    ],
)
def test_reasons_why_jobs_wait(reason: str, passes: bool | None) -> None:
    found = obstacle_of("7", "PENDING", reason)
    assert (found and found.passes) is passes
    assert found is None or (found.fix and "7" in found.reason)
    assert obstacle_of("7", "RUNNING", reason) is None


JOB = (
    "JobId=7 JobName=a-b UserId=u(1) JobState={state} Reason=None ExitCode={code} "
    "RunTime=1-00:01:02 TimeLimit=1-00:00:00 EndTime=1970-01-02T00:00:01 NodeList=node001 "
    "WorkDir=/a JobState=RUNNING ExitCode=0:0"
)


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        ("TIMEOUT", "0:15", {"signal": 15, "timed_out": True}),
        ("OUT_OF_MEMORY", "0:125", {"signal": 125, "limit": "memory"}),
        ("NODE_FAIL", "1:0", {"exit_status": 1, "failure": "NODE_FAIL"}),
        ("FAILED", "3:0", {"exit_status": 3}),
        ("FAILED", "0:9", {"signal": 9}),
        ("COMPLETED", "0:0", {}),
    ],
)
def test_how_a_job_ended(state: str, code: str, expected: dict[str, object]) -> None:
    run = run_of_job(parse_job(JOB.format(state=state, code=code)))
    assert run == EndedRun(host="node001", seconds=86462, ended=86401, **expected)
    line = f"7|{state}|{code}|86462|1970-01-02T00:00:01|node001\n"
    assert parse_accounting(f"{line}7|RUNNING|0:0|3|Unknown|None assigned\n") == [run]


def test_a_cancelled_or_running_job() -> None:
    (run,) = parse_accounting("7|CANCELLED by 1000|0:0|0|Unknown|None assigned\n")
    assert (run.failure, run.host, run.ended) == ("CANCELLED by 1000", "", 0.0)
    assert run_of_job(parse_job(JOB.format(state="RUNNING", code="0:0"))) is None


# The commands, as scripts


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return Slurm(DriverSettings(directory=tmp_path))


def says(directory: Path, name: str, *, out: str = "", err: str = "", status: int = 1) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{out}\nE\ncat >&2 <<'E'\n{err}\nE\nexit {status}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("err", "error"),
    [
        ("sbatch: error: invalid partition specified: x\nsbatch: error: failed", DriverError),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: violates", QueueFull),
        ("sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: violates", QueueFull),
        ("Unable to contact slurm controller (connect failure)", DriverUnreachable),
        ("Socket timed out on send/recv operation", DriverUnreachable),
        ("sbatch: error: Munge encode failed: Failed to access /run/munge", DriverUnreachable),
    ],
)
def test_a_refused_job(slurm: Slurm, tmp_path: Path, err: str, error: type[DriverError]) -> None:
    says(tmp_path, "sbatch", err=err)
    with pytest.raises(DriverError) as caught:
        slurm.submit(spec(), inherit=[])
    assert type(caught.value) is error


def test_the_id_of_a_job_follows_warnings(slurm: Slurm, tmp_path: Path) -> None:
    says(tmp_path, "sbatch", out="Welcome to site 7\n4711;bed", err="a warning", status=0)
    assert slurm.submit(spec(), inherit=[]) == "4711"


def test_cancelling_an_ended_job_is_no_error(slurm: Slurm, tmp_path: Path) -> None:
    says(tmp_path, "scancel", err="scancel: error: Kill job error on job id 7: Invalid job id")
    slurm.cancel(["7"])
    says(tmp_path, "scancel", err="scancel: error: Access/permission denied")
    with pytest.raises(DriverError, match="permission denied"):
        slurm.cancel(["7"])


def test_without_accounting_an_old_end_is_unknown(slurm: Slurm, tmp_path: Path) -> None:
    says(tmp_path, "scontrol", err="slurm_load_jobs error: Invalid job id specified")
    says(tmp_path, "sacct", err="Slurm accounting storage is disabled")
    assert slurm.accounting("7") is None
    says(tmp_path, "sacct", out="7|FAILED|3:0|5|Unknown|node001", status=0)
    assert slurm.accounting("7") == [EndedRun(host="node001", seconds=5, exit_status=3)]


def test_variables_of_the_user(slurm: Slurm, tmp_path: Path, monkeypatch) -> None:
    for name in ("SBATCH_PARTITION", "SQUEUE_FORMAT", "SLURM_JOB_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "theirs")
    monkeypatch.setenv("SLURM_CONF", "/site/slurm.conf")
    for name in ("sbatch", "squeue"):
        (tmp_path / name).write_text("#!/bin/sh\nenv\n")
        (tmp_path / name).chmod(0o755)
    listed, submitted = ask("squeue").out.splitlines(), ask("sbatch").out.splitlines()
    for lines in (listed, submitted):
        assert "SLURM_CONF=/site/slurm.conf" in lines
        assert not [line for line in lines if line.startswith(("SBATCH", "SQUEUE", "SLURM_JOB"))]
    assert not [line for line in submitted if "theirs" in line]
    assert "TZ" not in job_environment(own={"HOME": "/h", "SECRET": "x"})


def test_a_machine_without_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DriverUnreachable, match="squeue not found"):
        slurm.jobs()
