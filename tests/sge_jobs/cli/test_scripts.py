"""The job scripts, run like Grid Engine runs them: as a copy, with its variables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sge_jobs.errors import InputError
from sge_jobs.scripts import script_names, script_path
from tests.testbed.torchrun import write_torch

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("gpu_selftest", "mulc_benchmark", "train_hosts", "train_model", "train_regions")
SETTINGS = ("--set", "epochs=2", "--set", "hidden=8", "--fractions", "0.2,0.2,0.6")


def run(
    name: str, *arguments: str, directory: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    copy = directory / "spool" / "4711"
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(script_path(name), copy)
    env = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT), "JOB_ID": "4711", "RESTARTED": "0", **variables,
    }  # fmt: skip
    return subprocess.run(
        ["bash", str(copy), *arguments],
        check=False, cwd=directory, env=env, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a folder's name"
    made.mkdir()
    return made


def test_they_are_found_by_name() -> None:
    assert script_names() == NAMES
    with pytest.raises(InputError, match="'train'") as caught:
        script_path("train")
    assert "train_model" in caught.value.fix


@pytest.mark.parametrize("name", NAMES)
def test_each_is_sound_bash_and_explains_itself(name: str, folder: Path) -> None:
    path = script_path(name)
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    done = run(name, "--help", directory=folder)
    assert done.returncode == 0
    for word in ("Usage:", "Examples:", "qsub", "Exit codes: 0", "100", "PYTHON"):
        assert word in done.stdout
    assert "#$" not in done.stdout
    first = path.read_text().splitlines()[1]
    assert done.stdout.startswith(first.removeprefix("# "))


def test_a_model_is_trained_and_goes_on_when_the_job_runs_again(folder: Path) -> None:
    arguments = ("--data", "digits", "--checkpoint", "my model.npz", *SETTINGS)
    done = run("train_model", *arguments, directory=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "my model.npz").exists()
    assert "job 4711" in done.stdout
    assert run("train_model", *arguments, directory=folder).returncode == 100  # it is there
    again = run("train_model", *arguments, "--set", "epochs=3", directory=folder, RESTARTED="1")
    assert again.returncode == 0, again.stderr
    assert "epoch 3/3" in again.stderr
    assert "epoch 1/3" not in again.stderr


def test_a_mistake_of_the_user_puts_the_job_into_the_error_state(folder: Path) -> None:
    for arguments, words in (
        (("--checkpoint", "x.npz"), "--data"),
        (("--data", "digits", "--set", "epoch=3"), "epoch"),
    ):
        done = run("train_model", *arguments, directory=folder)
        assert (done.returncode, words in done.stderr) == (100, True), done.stderr
    done = run("train_model", "--data", "digits", directory=folder, PYTHON="/nonexistent/python")
    assert (done.returncode, "/nonexistent/python" in done.stderr and "VENV" in done.stderr) == (
        100,
        True,
    )


def test_a_gpu_that_does_not_answer_sends_the_job_elsewhere(folder: Path) -> None:
    tool = folder / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexit 9\n")
    tool.chmod(0o755)
    path = f"{tool.parent}:{os.environ['PATH']}"
    arguments = ("--data", "digits", *SETTINGS)
    done = run("train_model", *arguments, directory=folder, PATH=path, CUDA_VISIBLE_DEVICES="GPU-0")
    assert done.returncode == 99
    done = run("train_model", *arguments, directory=folder, PATH=path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr


STAND_IN = """#!/bin/sh
case "$*" in
    "-c import pycuda_nn") ;;
    "-m pycuda_nn train --help") echo "  {option} N|all  Train on N GPUs." ;;
    *) for word; do echo "[$word]"; done ;;
esac
"""


@pytest.mark.parametrize(
    ("gpus", "options", "given"),
    [
        ("GPU-a,GPU-b", (), ["[--gpus]", "[all]"]),
        ("GPU-a,GPU-b", ("--backend", "cuda"), ["[--backend]", "[cuda]", "[--gpus]", "[all]"]),
        ("GPU-a,GPU-b", ("--gpus", "auto"), ["[--gpus]", "[auto]"]),
        ("GPU-a,GPU-b", ("--gpus=1",), ["[--gpus=1]"]),
        ("GPU-a,GPU-b", ("--device", "1"), ["[--device]", "[1]"]),
        ("GPU-a,GPU-b", ("--backend", "numpy"), ["[--backend]", "[numpy]"]),
        ("GPU-a", (), []),
        ("", (), []),
    ],
)
def test_a_job_with_several_gpus_trains_on_all_of_them(
    folder: Path, gpus: str, options: tuple[str, ...], given: list[str]
) -> None:
    python = folder / "python"
    python.write_text(STAND_IN.format(option="--gpus"))
    python.chmod(0o755)
    variables = {"PYTHON": str(python), "CUDA_VISIBLE_DEVICES": gpus}
    done = run("train_model", "--data", "my rows", *options, directory=folder, **variables)
    words = ["[-m]", "[pycuda_nn]", "[train]", "[--data]", "[my rows]", *given]
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == words


def test_an_older_trainer_says_that_it_uses_one_gpu(folder: Path) -> None:
    python = folder / "python"
    python.write_text(STAND_IN.format(option="--device"))
    python.chmod(0o755)
    variables = {"PYTHON": str(python), "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    done = run("train_model", "--data", "rows", directory=folder, **variables)
    assert "--gpus" in done.stdout
    assert "[--gpus]" not in done.stdout
    assert done.stdout.endswith("[rows]\n")


def test_a_program_is_trained_by_torchrun_with_a_rank_for_each_gpu(folder: Path) -> None:
    write_torch(folder / "lib")
    (folder / "hosts").write_text(
        "localhost 2 a.q@localhost UNDEFINED\nlocalhost 1 b.q@localhost 0\n"
    )
    program = ("my train.py", "--set", "a b", "$HOME")
    variables = {
        "PE_HOSTFILE": str(folder / "hosts"), "PYTHONPATH": str(folder / "lib"), "MINE": "x\ny'z",
    }  # fmt: skip
    for gpus, ranks in (("GPU-a,GPU-b", 2), ("GPU-a", 1), ("", 3)):
        given = {**variables, "CUDA_VISIBLE_DEVICES": gpus}
        done = run("train_hosts", *program, directory=folder, **given)
        assert done.returncode == 0, done.stderr
        (found,) = (json.loads(line) for line in done.stdout.splitlines() if line[0] == "{")
        assert (found["nnodes"], found["node_rank"], found["nproc_per_node"]) == (1, 0, ranks)
        assert (found["program"], found["mine"]) == (list(program), variables["MINE"])
        assert (found["folder"], found["gpus"]) == (str(folder), gpus)
        assert found["files"] == ["hosts", "lib", "spool"]  # none of the script: ranks use a port
    failed = run("train_hosts", "train.py", "exit 7", directory=folder, **variables)
    assert (failed.returncode, "code 7" in failed.stderr) == (1, True), failed.stderr


def test_pycuda_nn_trains_on_all_hosts_without_torchrun(folder: Path) -> None:
    (folder / "hosts").write_text("localhost 2 a.q@localhost UNDEFINED\n")
    python = folder / "python"
    python.write_text(STAND_IN.replace('"-c import pycuda_nn")', "-c*)").format(option=""))
    python.chmod(0o755)
    program = ("-m", "pycuda_nn", "train", "--data", "my rows", "--checkpoint", "a b.npz")
    variables = {"PE_HOSTFILE": str(folder / "hosts"), "PYTHON": str(python)}
    for restarted, more in (("0", []), ("1", ["--resume"])):
        done = run("train_hosts", *program, directory=folder, **variables, RESTARTED=restarted)
        assert done.returncode == 0, done.stderr
        words = [line[1:-1] for line in done.stdout.splitlines() if line.startswith("[")]
        assert words[:-1] == [
            *program, *more, "--gpus", "all", "--hosts", "1", "--host", "0", "--meet",
        ]  # fmt: skip
        assert not Path(words[-1]).exists()  # removed at the end
        assert Path(words[-1]).parent == folder


def test_a_mistake_of_the_user_starts_no_host(folder: Path) -> None:
    write_torch(folder / "lib")
    (folder / "hosts").write_text("localhost 2 a.q@localhost UNDEFINED\n")
    lib, hosts = str(folder / "lib"), str(folder / "hosts")
    for arguments, python_path, file, words in (
        ((), lib, hosts, "missing program"),
        (("train.py",), lib, "/nonexistent", "qsub -pe"),
        (("train.py",), "/nonexistent", hosts, "VENV"),
    ):
        variables = {"PYTHONPATH": python_path, "PE_HOSTFILE": file}
        done = run("train_hosts", *arguments, directory=folder, **variables)
        assert (done.returncode, words in done.stderr) == (100, True), done.stderr


def task(number: int, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ("--regions", "the regions", "--data", "{region}s", "--out", "out put")
    return run(
        "train_regions", *arguments, *more, *SETTINGS, directory=folder, SGE_TASK_ID=str(number)
    )


def test_each_task_trains_its_region_once(folder: Path) -> None:
    (folder / "the regions").write_text("a b\n\ndigit\r\nmissing\n")
    done = task(2, folder)
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "out put" / "digit" / "result.json").read_text())
    assert result["best"]["epoch"] in (1, 2)
    assert (folder / "out put" / "digit" / "model.npz").exists()
    assert "epoch 2/2" in (folder / "out put" / "digit" / "log.txt").read_text()
    assert task(2, folder).stdout.startswith("out put/digit/result.json ")  # not trained again
    (folder / "out put" / "digit" / "result.json").unlink()
    assert task(2, folder).returncode == 0  # from the checkpoint
    done = task(3, folder)
    assert (done.returncode, "missings" in done.stderr) == (100, True), done.stderr
    assert not (folder / "out put" / "missing" / "result.json").exists()
    assert "region 4" in task(4, folder).stdout


def test_a_region_may_have_any_characters_that_a_folder_may(folder: Path) -> None:
    (folder / "the regions").write_text("R&D \\'\"$1\n")
    done = task(1, folder)
    assert done.returncode == 100
    assert "R&D \\'\"$1s" in done.stderr
    assert (folder / "out put" / "R&D \\'\"$1" / "log.txt").exists()


def test_a_wrong_call_for_regions_is_named(folder: Path) -> None:
    (folder / "the regions").write_text("../x\n")
    assert task(1, folder).returncode == 100
    assert not (folder / "x").exists()
    done = run("train_regions", "--regions", "the regions", directory=folder)
    assert (done.returncode, "--data" in done.stderr and "--out" in done.stderr) == (100, True)
    arguments = ("--regions", "the regions", "--data", "d", "--out", "o")
    done = run("train_regions", *arguments, directory=folder, SGE_TASK_ID="undefined")
    assert (done.returncode, "qsub -t 1-1" in done.stderr) == (100, True)


def bare(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run with a Python without the package, on a machine without a driver."""
    code = "import sys; sys.exit('sge_jobs' in sys.argv)"
    assert subprocess.run([sys.executable, "-I", "-c", code], check=False).returncode == 0
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return run(name, "--help-not", directory=folder, PYTHON=str(python), PYTHONPATH="", **variables)


@pytest.mark.parametrize("name", ["gpu_selftest", "mulc_benchmark"])
def test_the_package_is_found_by_variable_or_by_the_queues_starter(name: str, folder: Path) -> None:
    assert "SGE_JOBS_HOME" in bare(name, folder).stderr
    found = bare(name, folder, SGE_JOBS_HOME=str(ROOT))
    assert (found.returncode, "--help-not" in found.stderr) == (100, True)
    starter = ROOT / "sge_jobs" / "node" / "gpu-starter"
    (folder / "config").write_text(f"pe=none\nstarter_method={starter}\n")
    found = bare(name, folder, SGE_JOB_SPOOL_DIR=str(folder))
    assert (found.returncode, "--help-not" in found.stderr) == (100, True)
