"""Job scripts in a real bash, and the arguments of qsub."""

from __future__ import annotations

import json
import os
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sge_jobs.errors import InputError
from sge_jobs.model import JobSpec
from sge_jobs.queue.qsub import job_name, job_script, qsub_argv
from sge_jobs.resources import (
    Resources,
    needs,
    parse_resources,
    read_gpus,
    read_memory,
    resource_argv,
)
from sge_jobs.sizes import read_size

# Prints the arguments of the job, its directory and a variable.
SHOW = (
    "import json, os, sys;"
    "print(json.dumps([sys.argv[1:], os.getcwd(), os.environ.get('THE_VARIABLE')]))"
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
FILE_NAME = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=30
).filter(lambda name: name not in {".", ".."})


def spec(tmp_path: Path, **changed: object) -> JobSpec:
    given: dict[str, object] = {"name": "n", "argv": ("true",), "directory": tmp_path}
    return JobSpec(**{**given, **changed})  # type: ignore[arg-type]


def run(script: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    clean = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        ["/bin/bash"], check=False, input=os.fsencode(script), capture_output=True, env=clean
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(TEXT, max_size=4), name=FILE_NAME, value=TEXT)
def test_a_job_gets_its_arguments_directory_and_variables_as_they_are(
    tmp_path: Path, arguments: list[str], name: str, value: str
) -> None:
    directory = tmp_path / name
    directory.mkdir(exist_ok=True)
    log = tmp_path / "logs" / name
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    argv = (sys.executable, "-c", SHOW, *arguments)
    made = spec(
        tmp_path, argv=argv, directory=directory, log=log, environment={"THE_VARIABLE": value}
    )
    assert run(job_script(made), LC_ALL="C").returncode == 0
    assert json.loads(log.read_bytes()) == [arguments, str(directory), value]


def test_a_path_that_is_not_utf_8_is_kept(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    directory.mkdir()
    log = directory / "log"
    run(job_script(spec(tmp_path, argv=("pwd",), directory=directory, log=log)))
    assert os.fsencode(log.read_text(errors="surrogateescape").strip()) == os.fsencode(directory)


def test_output_is_appended_and_both_streams_go_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    made = spec(tmp_path, argv=("sh", "-c", "echo out; echo err >&2; exit 3"), log=log)
    done = run(job_script(made))
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")
    assert log.read_text() == "before\nout\nerr\n"


def test_each_task_has_a_log_of_its_own(tmp_path: Path) -> None:
    made = spec(tmp_path, argv=("echo", "x"), log=tmp_path / "a b", tasks="1-41")
    run(job_script(made), SGE_TASK_ID="7")
    assert (tmp_path / "a b.7").read_text() == "x\n"


def quick(tmp_path: Path, on_sleep: str = "") -> str:
    """Return a PATH whose ``sleep`` runs a line of shell and returns immediately."""
    tool = tmp_path / "bin" / "sleep"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho >>"{tmp_path}/sleeps"\n{on_sleep}\n')
    tool.chmod(0o755)
    return f"{tool.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("missing", ["log", "directory"])
def test_a_shared_directory_that_is_away_for_a_moment_is_waited_for(
    tmp_path: Path, missing: str
) -> None:
    paths = {"log": tmp_path / "log", "directory": tmp_path}
    paths[missing] = tmp_path / "it's gone" / "x"
    made = spec(tmp_path, argv=("sh", "-c", "pwd; echo no >&2"), **paths)
    path = quick(tmp_path, f'mkdir -p "{tmp_path}/it\'s gone{"/x" * (missing == "directory")}"')
    done = run(job_script(made), PATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert paths["log"].read_text() == f"{paths['directory']}\nno\n"


@pytest.mark.parametrize("missing", ["log", "directory"])
def test_one_that_stays_away_has_the_job_queued_again_once_and_then_says_so(
    tmp_path: Path, missing: str
) -> None:
    paths = {"log": tmp_path / "log", "directory": tmp_path}
    paths[missing] = tmp_path / "gone" / "x"
    mark = tmp_path / "mark"
    made = spec(tmp_path, argv=("touch", str(mark)), **paths)
    variables = {"PATH": quick(tmp_path), "HOME": str(tmp_path), "JOB_NAME": "n", "JOB_ID": "7"}
    script = "exec >/dev/null 2>&1\n" + job_script(made)
    assert run(script, RESTARTED="0", **variables).returncode == 99
    assert len((tmp_path / "sleeps").read_text()) == 30
    assert not (tmp_path / "n.o7").exists()
    assert run(script, RESTARTED="1", **variables).returncode == 100
    said = (tmp_path / ("n.o7" if missing == "log" else "log")).read_text()
    assert f"{tmp_path}/gone/x: No such file" in said
    assert "Job 7 on " in said
    assert not mark.exists()


def test_modules_venv_and_setup_come_before_the_program(tmp_path: Path) -> None:
    lmod, venv = tmp_path / "lmod", tmp_path / "my venv"
    for directory in (lmod / "init", venv / "bin", tmp_path / "elsewhere"):
        directory.mkdir(parents=True)
    (lmod / "init" / "bash").write_text("module() { LOADED=$LOADED$2,; }\n")
    (venv / "bin" / "activate").write_text("export ACTIVE=$LOADED\n")
    made = spec(
        tmp_path,
        argv=("sh", "-c", "echo $SET $(basename $PWD)"),
        modules=("cuda/12", "py thon"),
        venv=venv,
        setup=("export SET=$ACTIVE; cd elsewhere",),
    )
    done = run(job_script(made), LMOD_PKG=str(lmod))
    assert done.stdout.decode() == f"cuda/12,py thon, {tmp_path.name}\n"


@pytest.mark.parametrize("broken", [{"modules": ("nope",)}, {"venv": Path("/nonexistent")}])
def test_a_missing_module_or_venv_ends_the_job(tmp_path: Path, broken: dict[str, object]) -> None:
    mark = tmp_path / "mark"
    made = spec(tmp_path, argv=("touch", str(mark)), log=tmp_path / "log", **broken)
    assert run(job_script(made), MODULESHOME="/nonexistent").returncode == 1
    assert not mark.exists()
    assert (tmp_path / "log").read_text()


def test_a_program_that_is_not_there_is_named_in_the_log(tmp_path: Path) -> None:
    made = spec(tmp_path, argv=("no-such-program",), log=tmp_path / "log")
    assert run(job_script(made)).returncode == 127
    assert "no-such-program" in (tmp_path / "log").read_text()


def test_qsub_gets_every_resource(tmp_path: Path) -> None:
    resources = Resources(
        gpus=2,
        slots=4,
        walltime_s=59.5,
        memory="8G",
        queue="gpu.q",
        project="vision",
        requests=("arch=lx-amd64", "scratch=10G"),
        options=("-p", "-10"),
    )
    made = spec(
        tmp_path,
        resources=resources,
        log=tmp_path / "a:b c",
        tasks="1-41:2",
        concurrent_tasks=6,
        rerunnable=False,
    )
    assert " ".join(qsub_argv(made)) == (
        "-terse -b n -C  -N n -S /bin/bash -r n -j y -o /dev/null -wd /"
        f" -v SGE_JOBS_LOG={tmp_path}/a~072b~040c -l gpu=2 -l h_rt=60"
        " -l mem_free=8G -l arch=lx-amd64 -l scratch=10G -pe smp 4 -q gpu.q -P vision"
        " -t 1-41:2 -tc 6 -p -10"
    )


def test_a_plain_job_asks_for_nothing(tmp_path: Path) -> None:
    assert qsub_argv(spec(tmp_path)) == [
        *("-terse", "-b", "n", "-C", "", "-N", "n", "-S", "/bin/bash"),
        *("-r", "y", "-j", "y", "-o", ".", "-wd", str(tmp_path)),
    ]


@pytest.mark.parametrize("name", ["trial-7", "a.b_c+d", "_x"])
def test_a_good_name_stays(name: str) -> None:
    assert job_name(name) == name


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("1-digits", "_1-digits-"),
        ("réseau profond", "reseau_profond-"),
        ("a/b:c@d\\e*f?g", "a_b_c_d_e_f_g-"),
        ("none", "none-"),
        ("", "_-"),
        ("数字", "_-"),
        ("x" * 600, "x" * 120 + "-"),
    ],
)
def test_any_other_name_is_made_one_that_grid_engine_takes(text: str, start: str) -> None:
    assert job_name(text).startswith(start)


@given(TEXT, TEXT)
def test_names_are_legal_and_differ_where_texts_do(one: str, other: str) -> None:
    name = job_name(one)
    assert name.isascii()
    assert name[0] in string.ascii_letters + "_"
    assert not set(name) & set("/:@\\*? \t\n\"'<>&")
    assert (name == job_name(other)) == (one == other)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"argv": ()}, "argv"),
        ({"argv": ("a\0b",)}, "zero byte"),
        ({"directory": Path("here")}, "directory here "),
        ({"log": Path("log")}, "log log "),
        ({"environment": {"A-B": "x"}}, "'A-B'"),
        ({"environment": {"UID": "0"}}, "'UID'"),
        ({"tasks": "1-"}, "'1-'"),
        ({"tasks": "5-1"}, "'5-1'"),
        ({"tasks": "1-3", "concurrent_tasks": 0}, "concurrent tasks .*0"),
        ({"concurrent_tasks": 2}, "concurrent tasks .*tasks, e"),
        ({"resources": Resources(gpus=-1)}, "gpus .*-1"),
        ({"resources": Resources(gpus=1.5)}, "gpus .*1.5"),
        ({"resources": Resources(gpus=0.001)}, "gpus .*0.001"),
        ({"resources": Resources(gpus=float("nan"))}, "gpus .*nan"),
        ({"resources": Resources(slots=0)}, "slots .*0"),
        ({"resources": Resources(walltime_s=0)}, "walltime .*0 s"),
        ({"resources": Resources(walltime_s=float("nan"))}, "walltime .*nan s"),
    ],
)
def test_what_cannot_run_is_refused_before_qsub(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    for make in (job_script, qsub_argv):
        with pytest.raises(InputError, match=said):
            make(spec(tmp_path, **changed))


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("2", ["-l", "gpu=2"]),
        ("0.25", ["-l", "gpu_share=0.25"]),
        ("0", []),
        ("1234567", ["-l", "gpu=1234567"]),
    ],
)
def test_whole_gpus_and_a_share_of_one_are_requested(text: str, request_: list[str]) -> None:
    assert resource_argv(Resources(gpus=read_gpus(text))) == request_


@pytest.mark.parametrize("text", ["", "two", "-1", "1.5", "0.001", "nan", "inf", "1e400"])
def test_other_numbers_of_gpus_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"0\.01"):
        read_gpus(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "8", "64k", "-8G", "0G", "nan", "1e999", "8 G", "8G,gpu=1"),
        *("8X", "8GB", "8P", "08G", ".", "1.5.5G"),  # a real cell refuses these, too
    ],
)
def test_a_size_without_its_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="8G"):
        read_memory(text)


# A real cell accepts each.
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8G", 8 * 2**30),
        ("0.5g", 5e8),
        (".5G", 2**29),
        ("5.G", 5 * 2**30),
        ("1M", 2**20),
        ("500m", 5e8),
        ("1T", 2**40),
        ("8589934592", 2**33),
        ("1e3M", 1000 * 2**20),
        ("+1g", 1e9),
        ("0x10G", 2**34),
        ("010G", 2**33),
    ],
)
def test_a_size_of_grid_engine_is_not_changed(text: str, size: float) -> None:
    assert read_memory(text) == text
    assert read_size(text) == size


def test_each_resource_has_an_option_and_arguments_of_qsub() -> None:
    texts = {
        "gpus": "2",
        "walltime_s": "1:30:00",
        "memory": "8G",
        "requests": ["a=1", "b=2"],
        "slots": "4",
        "parallel_environment": "mpi",
        "queue": "gpu.q",
        "project": "net",
        "options": "-m 'e a'",
    }
    assert [need.name for need in needs()] == list(texts)
    resources = parse_resources(texts)
    assert resources.options == ("-m", "e a")
    assert " ".join(resource_argv(resources)) == (
        "-l gpu=2 -l h_rt=5400 -l mem_free=8G -l a=1 -l b=2 -pe mpi 4 -q gpu.q -P net"
    )
    assert resource_argv(Resources(parallel_environment="mpi")) == ["-pe", "mpi", "1"]
