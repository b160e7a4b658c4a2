"""The starter as a process: the real launcher, a fake qstat, real locks."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.record import Record
from sge_jobs.node.claim.shortage import describe
from sge_jobs.node.gpus.inventory import Gpu, Inventory, boot_id, encode

ROOT = Path(__file__).resolve().parents[4]
SHARED = ROOT / "sge_jobs"
NODE = SHARED / "node"

RUN = """
import sys
sys.path.append(sys.argv.pop(1))
from sge_jobs.node.claim import starter
class Settings(starter.NodeSettings):
    cache, locks = sys.argv.pop(1), sys.argv.pop(1)
    declared = "/nonexistent"
    gpu_wait_s, qstat_wait_s = 0.2, 0.2
starter.main(sys.argv[1:], "", Settings())
"""


@dataclass
class FakeHost:
    """A host with GPUs, on which qstat prints ``qstat.txt``."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.path / "spool").mkdir(parents=True)
        self.gpus("GPU-0", "GPU-1")
        tool = self.path / "bin" / "qstat"
        tool.parent.mkdir()
        tool.write_text('#!/bin/sh\nread line < "${0%/*}/../qstat.txt" || exit 1\n'
                        'cat "${0%/*}/../qstat.txt"\n')  # fmt: skip
        tool.chmod(0o755)
        self.asks("")
        self.config()
        self.environment = {
            "PATH": f"{tool.parent}:/usr/bin:/bin",
            "JOB_ID": "12",
            "SGE_TASK_ID": "undefined",
            "SGE_JOB_SPOOL_DIR": str(self.path / "spool"),
            "SGE_STARTER_SHELL_PATH": "/bin/sh",
            "SGE_STARTER_SHELL_START_MODE": "unix_behavior",
            "SGE_STARTER_USE_LOGIN_SHELL": "false",
        }

    def gpus(
        self, *uuids: str, per_slot: bool = False, blocked: dict[str, list[int]] | None = None
    ) -> None:
        found = [Gpu(index=place, uuid=uuid) for place, uuid in enumerate(uuids)]
        known = Inventory(source="declared", gpus=found, per_slot=per_slot, blocked=blocked)
        (self.path / "gpus").write_text(encode(known, boot_id()))

    def asks(self, resources: str) -> None:
        line = f"hard resource_list:         {resources}\n" if resources else ""
        (self.path / "qstat.txt").write_text(f"job_number:                 12\n{line}")

    def config(self, **lines: str) -> None:
        given = {
            "handle_as_binary": "1",
            "no_shell": "1",
            "pe": "none",
            "pe_task_id": "NONE",
            **lines,
        }
        text = "".join(f"{key}={value}\n" for key, value in given.items())
        (self.path / "spool" / "config").write_text(text)

    def argv(self, *command: str) -> list[str]:
        python = [sys.executable, "-I", "-S", "-c", RUN, str(ROOT)]
        return [*python, str(self.path / "gpus"), str(self.path / "locks"), *command]

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**self.environment, **environment}
        return subprocess.run(
            self.argv(*command), check=False, env=env, capture_output=True, text=True, timeout=60
        )

    def hold(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Start a job that runs until its standard input ends; return after it started."""
        process = subprocess.Popen(
            self.argv("sh", "-c", "echo $CUDA_VISIBLE_DEVICES; cat"),
            env={**self.environment, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().startswith("GPU-")
        return process


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "a host")


def visible(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_job_gets_as_many_gpus_as_it_asked_for(host: FakeHost) -> None:
    for resources, expected in (
        ("", ""), ("h_rt=60", ""), ("gpu=1", "GPU-0"), ("gpu=2,h_rt=9", "GPU-0,GPU-1"),
    ):  # fmt: skip
        host.asks(resources)
        done = host.run("printenv", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
        assert visible(done) == f"{expected}\nPCI_BUS_ID".strip()


def test_a_job_that_asked_for_none_sees_none_even_if_its_variable_says_so(host: FakeHost) -> None:
    done = host.run("printenv", "CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="0,1")
    assert visible(done) == ""


def test_a_gpu_that_is_taken_is_named_and_the_job_goes_back(host: FakeHost) -> None:
    host.asks("gpu=1")
    held = host.hold(JOB_ID="11", USER="bob")
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-1"
    host.asks("gpu=2")
    done = host.run("true")
    assert done.returncode == 99
    assert re.search(r"GPU-0: job 11 .*\bbob\b", done.stderr)
    assert "GPU-1: " in done.stderr
    held.send_signal(signal.SIGKILL)
    held.communicate()
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-0,GPU-1"


@pytest.mark.parametrize("words", ["since 999999999999999999", "task abc"])
def test_what_a_user_wrote_into_a_lock_file_breaks_no_other_job(host: FakeHost, words: str) -> None:
    host.asks("gpu=2")
    host.run("true")
    file = host.path / "locks" / "GPU-0"
    key = words.partition(" ")[0]
    lines = file.read_text().split("\n")
    file.write_text("\n".join(words if line.startswith(f"{key} ") else line for line in lines))
    with file.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = host.run("true")
    assert (done.returncode, "GPU-0: " in done.stderr) == (99, True)
    assert "job 12 of" not in done.stderr


def test_any_record_can_be_described() -> None:
    record = Record(job="1", user="u", boot="b", since=10**18)
    held = LockState(uuid="GPU-0", held=True, record=record, job_alive=True)
    assert re.search(r"\bjob 1 .*\bu\b", describe(held))


def test_a_master_that_does_not_answer_sends_the_job_back(host: FakeHost) -> None:
    (host.path / "qstat.txt").write_text("")
    done = host.run("true")
    assert done.returncode == 99
    assert "job 12 " in done.stderr
    assert "qstat" in done.stderr


def test_grid_engine_9_says_itself_which_devices(host: FakeHost) -> None:
    host.asks("gpu=2")
    both = host.run("printenv", "CUDA_VISIBLE_DEVICES", SGE_HGR_gpu="1 0")
    assert visible(both) == "GPU-1,GPU-0"
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES", SGE_HGR_gpu="GPU-1")) == "GPU-1"
    done = host.run("true", SGE_HGR_gpu="7")
    assert done.returncode == 100
    assert "GPU 7" in done.stderr


def test_a_user_who_names_devices_gets_no_more_than_asked_for(host: FakeHost) -> None:
    for resources, expected in (("", ""), ("gpu=1", "GPU-0")):
        host.asks(resources)
        done = host.run("printenv", "CUDA_VISIBLE_DEVICES", SGE_HGR_gpu="0 1")
        assert visible(done) == expected
    host.config(pe="smp", host_slots="2")  # like a cell of Grid Engine 9 that counts per slot
    done = host.run("printenv", "CUDA_VISIBLE_DEVICES", SGE_HGR_gpu="0 1")
    assert visible(done) == "GPU-0,GPU-1"


def test_a_fault_of_ours_never_lets_a_gpu_job_run_without_its_gpu(host: FakeHost) -> None:
    host.asks("gpu=many")
    done = host.run("true")
    assert (done.returncode, "gpu=many" in done.stderr) == (100, True)
    host.asks("gpu=1")
    (host.path / "locks").write_text("no directory")
    done = host.run("true")
    assert (done.returncode, "/locks: " in done.stderr) == (100, True)
    host.asks("")
    assert host.run("true").returncode == 0


def test_a_host_without_gpus_sends_a_gpu_job_back_and_runs_the_others(host: FakeHost) -> None:
    host.gpus()
    host.asks("gpu=1")
    done = host.run("true")
    assert (done.returncode, "nvidia-smi" in done.stderr) == (99, True)
    host.asks("")
    assert host.run("true").returncode == 0


def test_a_gpu_that_a_foreign_process_uses_is_not_given(host: FakeHost) -> None:
    host.gpus("GPU-0", "GPU-1", blocked={"GPU-0": [os.getpid(), 2**22]})
    host.asks("gpu=1")
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-1"
    host.asks("gpu=2")
    done = host.run("true")
    (line,) = (line for line in done.stderr.splitlines() if "GPU-0: " in line)
    assert (done.returncode, line.endswith(f" {os.getpid()}")) == (99, True)


def test_a_foreign_process_that_has_ended_blocks_nothing(host: FakeHost) -> None:
    host.gpus("GPU-0", blocked={"GPU-0": [2**22]})
    host.asks("gpu=1")
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-0"


def test_gpus_count_for_each_slot_where_the_cell_says_so(host: FakeHost) -> None:
    host.asks("gpu=1")
    host.config(pe="smp", host_slots="2")
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-0"
    host.gpus("GPU-0", "GPU-1", per_slot=True)
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-0,GPU-1"


def test_further_tasks_of_a_parallel_job_share_its_gpus(host: FakeHost) -> None:
    host.asks("gpu=1")
    host.config(pe="smp", host_slots="2", job_owner="bob")
    first = host.hold()
    host.config(pe="smp", host_slots="2", job_owner="bob", pe_task_id="1.node")
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES")) == "GPU-0"
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES", JOB_ID="13")) == ""
    first.kill()
    first.communicate()


def test_exit_status_arguments_and_signals_are_the_jobs_own(host: FakeHost) -> None:
    script = "import sys, os; print(sys.argv[1:], flush=True); os.kill(os.getpid(), 15)"
    done = host.run(sys.executable, "-c", script, "a b", "", "ü")
    assert done.stdout == "['a b', '', 'ü']\n"
    assert done.returncode == -signal.SIGTERM
    status = host.run("cat", "/proc/self/status").stdout
    assert int(status.partition("SigIgn:")[2].split()[0], 16) & 1 << (signal.SIGPIPE - 1) == 0
    assert host.run("sh", "-c", "exit 7").returncode == 7


def test_a_script_without_its_first_line_is_run_by_sh(host: FakeHost) -> None:
    script = host.path / "job script"
    script.write_text("echo $# $1\n")
    script.chmod(0o755)
    assert visible(host.run(str(script), "x y")) == "1 x y"
    done = host.run(str(host.path / "nothing"))
    assert (done.returncode, "No such file" in done.stderr) == (100, True)


def launcher_run(
    launcher: Path, *command: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(launcher), *command], check=False, env=env, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    target = tmp_path / "site packages" / "sge_jobs"
    shutil.copytree(ROOT / "sge_jobs", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target / "node" / "gpu-starter"


def test_the_launcher_leaves_the_environment_alone(host: FakeHost, installed: Path) -> None:
    env = {**host.environment, "FOO": "a\nb", "PYTHONPATH": "/nonexistent"}
    expected = {**env, "CUDA_VISIBLE_DEVICES": "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    for more in ({}, {"LC_CTYPE": "C", "SHLVL": "3", "PYTHONHOME": "/nonexistent"}):
        done = launcher_run(installed, "env", "-0", env={**env, **more})
        assert done.returncode == 0, done.stderr
        found = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
        found.pop("PWD", None)
        assert found == {**expected, **more}


def test_without_a_working_package_jobs_without_gpus_still_run(
    host: FakeHost, installed: Path
) -> None:
    (installed.parent / "claim" / "starter.py").write_text("import nothing_of_this_name\n")
    done = launcher_run(installed, "echo", "a b", env=host.environment)
    assert (done.returncode, done.stdout) == (0, "a b\n")
    host.config(no_shell="0")
    done = launcher_run(installed, "echo $HOME;", "exit 5", env={**host.environment, "HOME": "/x"})
    assert (done.returncode, done.stdout) == (5, "/x\n")
    host.asks("h_rt=9,gpu=1")
    done = launcher_run(installed, "true", env=host.environment)
    assert (done.returncode, "SGE_JOBS_PYTHON" in done.stderr) == (100, True)
    (host.path / "qstat.txt").write_text("")
    assert launcher_run(installed, "true", env=host.environment).returncode == 99


def test_the_launchers_are_executable() -> None:
    for name in ("gpu-starter", "gpu-sensor"):
        assert os.access(NODE / name, os.X_OK)
        assert subprocess.run(["sh", "-n", str(NODE / name)], check=False).returncode == 0


def test_the_starter_imports_nothing_that_costs_milliseconds() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import sge_jobs.node.claim.starter; "
        "print(*sorted(set(sys.modules)))"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, str(ROOT)]
    loaded = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    slow = {"re", "json", "dataclasses", "typing", "subprocess", "pathlib", "enum", "collections"}
    assert not slow & set(loaded)


@pytest.mark.parametrize(
    "path",
    [
        *NODE.rglob("*.py"),
        *(ROOT / "sge_jobs" / f"{name}.py" for name in ("__init__", "exit_codes", "gpu_state")),
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_it_can_be_read_by_python_3_9(path: Path) -> None:
    text = path.read_text()
    ast.parse(text, feature_version=(3, 9))
    assert "slots=True" not in text
    assert "kw_only=True" not in text
    assert "from __future__ import annotations" in text or path.name in (
        "__init__.py",
        "__main__.py",
        "exit_codes.py",
    )
