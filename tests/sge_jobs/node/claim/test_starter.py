"""The starter as a process: the real launcher, a fake qstat, answers of the sensor."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sge_jobs.node.claim.answer import Answer, write_answer

ROOT = Path(__file__).resolve().parents[4]
SHARED = ROOT / "sge_jobs"
NODE = SHARED / "node"

RUN = """
import sys
sys.path.append(sys.argv.pop(1))
from sge_jobs.node.claim import starter
starter._SOON_S = starter._QSTAT_S = 0.2
starter.main(sys.argv[1:], "", 0.5)
"""
XML = """<?xml version='1.0'?>
<detailed_job_info><djob_info><element><JB_job_number>12</JB_job_number><JB_hard_resource_list>
{}</JB_hard_resource_list></element></djob_info></detailed_job_info>
"""
REQUEST = """<qstat_l_requests><CE_name>{}</CE_name><CE_stringval>{}</CE_stringval>
</qstat_l_requests>"""


@dataclass
class FakeHost:
    """A host on which qstat prints ``qstat.txt``."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.path / "spool").mkdir(parents=True)
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

    def asks(self, resources: str) -> None:
        pairs = [item.split("=") for item in resources.split(",") if item]
        (self.path / "qstat.txt").write_text(
            XML.format("".join(REQUEST.format(*pair) for pair in pairs))
        )

    def answer(self, *gpus: str, code: int = 0, what: str = "", shepherd: int = 0) -> None:
        given = Answer(gpus, code=code, what=what, shepherd=shepherd)
        write_answer(str(self.path / "spool"), given)

    def config(self, **lines: str) -> None:
        given = {"handle_as_binary": "1", "no_shell": "1", **lines}
        text = "".join(f"{key}={value}\n" for key, value in given.items())
        (self.path / "spool" / "config").write_text(text)

    def argv(self, *command: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", RUN, str(ROOT), *command]

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**self.environment, **environment}
        return subprocess.run(
            self.argv(*command), check=False, env=env, capture_output=True, text=True
        )


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "a host")


def visible(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_job_sees_the_gpus_of_its_answer(host: FakeHost) -> None:
    for gpus in ((), ("GPU-0",), ("GPU-1", "GPU-0")):
        host.answer(*gpus)
        done = host.run("printenv", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
        assert visible(done) == f"{','.join(gpus)}\nPCI_BUS_ID".strip()


def test_variables_of_a_user_change_nothing(host: FakeHost) -> None:
    host.answer("GPU-0")
    own = {"CUDA_VISIBLE_DEVICES": "0,1", "SGE_HGR_gpu": "0 1"}
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES", **own)) == "GPU-0"


def test_a_job_that_cannot_run_ends_with_the_code_and_the_words_of_the_answer(
    host: FakeHost,
) -> None:
    host.answer(code=99, what="GPU-0: job 11\nGPU-1: job 12")
    done = host.run("true")
    assert done.returncode == 99
    assert done.stderr.endswith(": GPU-0: job 11\nGPU-1: job 12\n")


def test_without_an_answer_only_jobs_without_gpus_run(host: FakeHost) -> None:
    assert visible(host.run("printenv", "CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="0")) == ""
    host.asks("h_rt=9,gpu=1")
    done = host.run("true")
    assert (done.returncode, "job 12 " in done.stderr) == (99, True)
    host.asks("gpu=many")
    done = host.run("true")
    assert (done.returncode, "gpu=many" in done.stderr) == (100, True)
    (host.path / "qstat.txt").write_text("")  # the master does not answer
    done = host.run("true")
    assert (done.returncode, "qstat" in done.stderr) == (99, True)


@pytest.mark.parametrize("text", ["", "sge_jobs answer 1\n", "\0" * 100, "x\n" * 9])
def test_an_incomplete_answer_is_none(host: FakeHost, text: str) -> None:
    host.asks("gpu=1")
    (host.path / "spool" / "sge_jobs").write_text(text)
    assert host.run("true").returncode == 99


def test_the_profile_of_a_login_shell_does_not_change_the_gpus(host: FakeHost) -> None:
    profile = host.path / ".profile"
    profile.write_text("export CUDA_VISIBLE_DEVICES=0; own=1\n")
    script = host.path / "a script"
    script.write_text('echo "$0 $# $1 [$own] $CUDA_VISIBLE_DEVICES"\n')
    shell = {
        "HOME": str(host.path),
        "SGE_STARTER_SHELL_START_MODE": "posix_compliant",
        "SGE_STARTER_USE_LOGIN_SHELL": "true",
    }
    host.answer("GPU-0", "GPU-1")
    host.config(handle_as_binary="0")
    done = host.run(str(script), "a b", **shell)
    assert visible(done) == f"{script} 1 a b [1] GPU-0,GPU-1"
    host.config(no_shell="0")
    assert visible(host.run('echo "$own $CUDA_VISIBLE_DEVICES"', **shell)) == "1 GPU-0,GPU-1"


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
        [str(launcher), *command], check=False, env=env, capture_output=True, text=True
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
    (host.path / "qstat.txt").write_text("job_number: 12\n")
    done = launcher_run(installed, "echo", "a b", env=host.environment)
    assert (done.returncode, done.stdout) == (0, "a b\n")
    host.config(no_shell="0")
    done = launcher_run(installed, "echo $HOME;", "exit 5", env={**host.environment, "HOME": "/x"})
    assert (done.returncode, done.stdout) == (5, "/x\n")
    (host.path / "qstat.txt").write_text("job_number: 12\nhard resource_list: h_rt=9,gpu=1\n")
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
