"""The record of a failed start: its word, the log of the job, the fallback without Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sge_jobs.node.failed_start import FailedStart, decode, encode, find, pack, tell, unpack

NODE = Path(__file__).resolve().parents[3] / "sge_jobs" / "node"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80)


@given(TEXT)
@example("/a b,c=d:e~f%g\nh")
@example("/surrogate \udcff")
def test_a_path_survives_packing(path: str) -> None:
    packed = pack(path)
    assert unpack(packed) == path
    assert not set(packed) & set(",=:% \n\"'$`\\")


@given(TEXT)
@example("x" * 2000)
@example("é" * 2000)
def test_a_reason_becomes_one_short_line(reason: str) -> None:
    word = encode(FailedStart("node001", reason, at=7, times=3))
    assert len(word) < 900
    back = decode(word)
    assert (back.host, back.at, back.times) == ("node001", 7, 3)
    assert len(back.reason.splitlines()) <= 1


@pytest.mark.parametrize(
    "word", ["", "none", "h", "h/1/2", "h/x/1/r", "h/1/1/~9", "h/1/1/~zzz", "/1/1/r", "h h/1/1/r",
             "h/1/9999999999999/r", "h/\u0661/1/r"]
)  # fmt: skip
def test_other_words_are_no_failed_start(word: str) -> None:
    found = decode(word)
    assert found is None or (word == "h/1/2" and found.reason == "")


def test_the_context_of_a_job_has_it() -> None:
    word = encode(FailedStart("node001", "no GPU, a=b", at=7, times=3))
    text = f"job_number:   3\ncontext:      a=1,sge_jobs_failed={word},b=2\n"
    assert find(text).reason == "no GPU, a=b"
    assert find("job_number: 3\ncontext:  a=1\n") is None


def run(environment: dict[str, str], stderr: int) -> None:
    code = "import sys, os; sys.path.append(sys.argv[1])\n"
    code += "from sge_jobs.node.failed_start import tell; tell('no GPU', dict(os.environ))"
    argv = [sys.executable, "-c", code, str(NODE.parents[1])]
    subprocess.run(argv, env=environment, stderr=stderr, check=True)


def test_the_log_of_the_job_gets_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "a b,c"
    environment = {"HOSTNAME": "node001", "SGE_JOBS_LOG": pack(str(log)), "PATH": "/nowhere"}
    run(environment, subprocess.DEVNULL)
    assert log.read_text() == "sge-jobs: node001: no GPU\n"
    run({**environment, "SGE_TASK_ID": "7"}, subprocess.DEVNULL)
    assert log.with_name("a b,c.7").exists()
    with (tmp_path / "job.o1").open("w") as own:
        run(environment, own.fileno())
    assert len(log.read_text().splitlines()) == 1, "a job with Grid Engine's own file gets it there"
    assert "no GPU" in (tmp_path / "job.o1").read_text()


def test_a_pipe_or_an_invalid_log_does_not_stop_the_starter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    base = {"HOSTNAME": "node001", "PATH": "/nowhere"}
    for path in (str(tmp_path / "pipe"), "/no/such/folder/x", "relative"):
        run({**base, "SGE_JOBS_LOG": pack(path)}, subprocess.DEVNULL)
    tell("no GPU", {**base, "SGE_JOBS_LOG": "/a~99"})
    assert "no GPU" in capsys.readouterr().err


def test_without_python_the_log_and_the_context_get_it_too(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, line in {
        "qstat": "echo 'job_number: 3'; echo 'hard resource_list: gpu=1'",
        "qalter": f'printf "%s\\n" "$@" > {tmp_path}/context',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    log = tmp_path / "a b,c"
    environment = {"HOSTNAME": "node001", "SGE_JOBS_LOG": pack(str(log)), "JOB_ID": "3"}
    done = subprocess.run(
        [str(NODE / "gpu-starter"), "--without-python", "true"],
        env={**environment, "PATH": f"{tools}:/usr/bin:/bin"},
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 100
    assert "SGE_JOBS_PYTHON" in log.read_text()
    option, word, job = (tmp_path / "context").read_text().splitlines()
    assert (option, job) == ("-ac", "3")
    start = decode(word.removeprefix("sge_jobs_failed="))
    assert (start.host, start.times) == ("node001", 1)
    assert log.read_text() == f"sge-jobs: node001: {start.reason}\n"
