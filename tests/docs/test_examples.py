"""The examples that the tutorial and the how-to pages include run from end to end."""

from __future__ import annotations

import json
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.tools import DOCS, ROOT, tool

EXAMPLES = ROOT / "examples"
BIN = Path(sys.executable).parent


def run(*argv: str, cwd: Path) -> str:
    environment = {"PATH": f"{BIN}:/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def search(folder: Path, trials: int) -> str:
    argv = ("--method=random", f"--max-finished-jobs={trials}", ".")
    return run(sys.executable, "-m", "spearmint", *argv, cwd=folder)


def test_networks_of_a_job_are_trained_at_once(tmp_path: Path) -> None:
    folder = copy("batch", tmp_path)
    assert "Best of 8 complete trials" in search(folder, 8)
    assert [path.name for path in (folder / "batches").iterdir()] == ["00000001"]


@pytest.mark.slow
def test_the_tutorial_runs_from_the_data_to_the_test_error(tmp_path: Path) -> None:
    folder = tmp_path / "pumps"
    shutil.copytree(EXAMPLES / "tutorial", folder)
    run(sys.executable, "make_data.py", cwd=folder)
    assert len((folder / "pumps.csv").read_text().splitlines()) == 1501
    page = EXAMPLES.parent.joinpath("docs", "start", "tutorial.rst").read_text()
    by_hand = re.search(r"\$ python -c '(.+)'$", page, re.MULTILINE)
    assert by_hand is not None
    assert 0.3 < float(run(sys.executable, "-c", by_hand[1], cwd=folder)) < 3.0
    assert "Best of 2 complete trials" in search(folder, 2)
    error = re.search(r"test (\d\.\d+) kWh", run(sys.executable, "final.py", cwd=folder))
    assert error is not None
    assert 0.3 < float(error[1]) < 3.0


def test_each_example_has_a_page_whose_paths_exist() -> None:
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir()]
    index = (EXAMPLES / "README.rst").read_text()
    for folder in folders:
        assert f"``{folder.name}``" in index
        page = (folder / "README.rst").read_text()
        assert len(page.splitlines()) <= 16
        for path in re.findall(r"(?<![\w/])((?:docs|examples)/[\w./]+[\w])", page):
            assert (ROOT / path).exists(), f"{folder.name}: {path}"


def copy(name: str, tmp_path: Path) -> Path:
    """Return a copy of an example."""
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    return folder


def test_regions_are_searched_with_a_warm_start(tmp_path: Path) -> None:
    folder = copy("regions", tmp_path)
    search(folder, 3)
    trials = json.loads(run("spearmint", "export", "--json", ".", cwd=folder))
    assert sorted({trial["region"] for trial in trials}) == ["de", "jp", "us"]
    assert all(trial["state"] == "complete" for trial in trials)
    points = [(trial["region"], str(trial["params"])) for trial in trials]
    shared = {point for region, point in points if region != "de"}
    assert shared & {point for region, point in points if region == "de"}


@pytest.mark.slow
def test_the_example_for_a_cell_trains_without_a_gpu_too(tmp_path: Path) -> None:
    assert "Best of 1 complete trial" in search(copy("gpu_cell", tmp_path), 1)


def test_an_optuna_study_continues(tmp_path: Path) -> None:
    folder = copy("from_optuna", tmp_path)
    assert "10 trials" in run(sys.executable, "study.py", "tpe", cwd=folder)
    run("spearmint", "import", "--study=loss", ".", "sqlite:///optuna.db", cwd=folder)
    assert "Best of 12 complete trials" in search(folder, 12)
    assert "20 trials" in run(sys.executable, "study.py", "gp", cwd=folder)


def test_images_are_learned_by_two_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    folder = copy("cifar", tmp_path)
    (folder / "config.pb").write_text((folder / "config.pb").read_text() + "processes: 2\n")
    code = (folder / "cifar.py").read_text()
    (folder / "cifar.py").write_text(code.replace('"EPOCHS", "20"', '"EPOCHS", "1"'))
    assert "Best of 1 complete trial" in search(folder, 1)


def test_a_trial_in_r(tmp_path: Path) -> None:
    if not shutil.which("Rscript"):
        pytest.skip("needs Rscript (Debian: r-base-core)")
    assert "Best of 2 complete trials (0 broken)" in search(copy("r", tmp_path), 2)


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    source = (EXAMPLES / "notebook/search.ipynb").read_text()
    book = nbformat.reads(source.replace("trials=20", "trials=3"), as_version=4)
    nbformat.validate(book)
    where = {"metadata": {"path": str(tmp_path)}}
    limits = {"timeout": None, "startup_timeout": 500, "iopub_timeout": 500}
    nbclient.NotebookClient(book, resources=where, **limits).execute()
    assert set(book.cells[3].outputs[-1].data["text/plain"]) >= set("lr units act")
    assert "<table" in book.cells[5].outputs[0].data["text/html"]


def test_a_trial_takes_a_gpu_that_no_other_process_has(tmp_path: Path) -> None:
    code = (
        "import os, sys; from local_gpus import take_gpu; print(take_gpu(2), flush=True); "
        "assert os.environ['CUDA_VISIBLE_DEVICES'] in '01'; sys.stdin.read()"
    )
    environment = {"PYTHONPATH": str(EXAMPLES / "local_gpus"), "TMPDIR": str(tmp_path)}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    with start() as first, start() as second, start() as third:
        processes = {process.stdout: process for process in (first, second, third)}
        # Two of the three hold a GPU each; the last gets the one that a kill frees.
        holders: dict[subprocess.Popen[str], str] = {}
        while len(holders) < 2:
            ready, _, _ = select.select(list(processes), [], [])
            holders |= {processes.pop(out): out.readline().strip() for out in ready}
        assert sorted(holders.values()) == ["0", "1"]
        killed = next(iter(holders))
        killed.kill()
        (out,) = processes
        assert out.readline().strip() == holders[killed]
        for process in (first, second, third):
            process.kill()


def test_every_output_that_a_page_includes_is_recorded() -> None:
    pages = [*DOCS.glob("how_to/*.rst"), *DOCS.glob("start/*.rst")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    used = set(re.findall(r"literalinclude:: /_outputs/(\w+)\.txt", text))
    source = (DOCS / "_tools" / "record_outputs.py").read_text(encoding="utf-8")
    written = set(re.findall(r'\br\.write\(\s*"(\w+)"', source))
    assert used == written
    assert used == {path.stem for path in (DOCS / "_outputs").glob("*.txt")}
    assert callable(tool("record_outputs").record)
