"""The examples that the tutorial and the how-to pages include run from end to end."""

from __future__ import annotations

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
CONFIG = """language: PYTHON name: "net"
variable { name: "x" type: FLOAT min: 0 max: 1 }
variable { name: "kind" type: ENUM options: "a" options: "b" }
"""


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


@pytest.mark.slow
def test_the_tutorial_runs_from_the_data_to_the_test_error(tmp_path: Path) -> None:
    folder = tmp_path / "pumps"
    shutil.copytree(EXAMPLES / "tutorial", folder)
    run(sys.executable, "make_data.py", cwd=folder)
    assert len((folder / "pumps.csv").read_text().splitlines()) == 1501
    assert "Best of 2 complete trials" in search(folder, 2)
    error = re.search(r"test (\d\.\d+) kWh", run(sys.executable, "final.py", cwd=folder))
    assert error is not None
    assert 0.3 < float(error[1]) < 3.0


def test_failed_trials_run_once_more_at_the_same_points(tmp_path: Path) -> None:
    (tmp_path / "config.pb").write_text(CONFIG)
    code = "def main(job_id, params):\n    {} return float(params['x'][0])\n"
    (tmp_path / "net.py").write_text(code.format("assert params['kind'] != ['b'];"))
    search(tmp_path, 4)
    export = ("-m", "spearmint", "export", "--csv", ".")
    before = run(sys.executable, *export, cwd=tmp_path).splitlines()
    failed = [row.rsplit(",", 2)[1:] for row in before if ",broken," in row]
    assert failed
    (tmp_path / "net.py").write_text(code.format(""))
    script = str(EXAMPLES / "rerun_failed" / "rerun_failed.py")
    assert str(len(failed)) in run(sys.executable, script, ".", cwd=tmp_path)
    assert " 0 " in run(sys.executable, script, ".", cwd=tmp_path)
    search(tmp_path, 4 + len(failed))
    after = run(sys.executable, *export, cwd=tmp_path).splitlines()[len(before) :]
    assert [row.rsplit(",", 2)[1:] for row in after] == failed
    assert all(",complete," in row for row in after)


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
