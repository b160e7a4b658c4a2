"""A driver for another queue is a Queue, a Dialect and a class with one line: scratch.py."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import spearmint.drivers.testing
from spearmint.drivers import DriverSettings
from spearmint.drivers.testing import DriverContract
from tests.spearmint.conftest import MakeExperiment
from tests.spearmint.drivers import scratch
from tests.waiting import until

CODE = """
import time

def main(job_id, params):
    with open("starts.txt", "a") as file:
        file.write(f"{job_id}\\n")
    time.sleep(0.3)
    return float(params["x"][0])
"""


class TestScratchDriver(DriverContract):
    def make_driver(self, directory: Path) -> scratch.ScratchDriver:
        return scratch.ScratchDriver(DriverSettings(directory=directory, polling_s=0.05))

    def check_explanation(self, text: str) -> None:
        assert "Scratch" in text


def test_it_is_short() -> None:
    lines = Path(scratch.__file__).read_text().splitlines()
    assert sum(1 for line in lines if line.strip()) < 75


def test_a_search_runs_through_three_kills(make_experiment: MakeExperiment) -> None:
    experiment = make_experiment(CODE)
    shutil.copy(scratch.__file__, experiment.root / "my_queue.py")
    argv = [
        str(Path(sys.executable).with_name("spearmint")),
        "--driver=my_queue:ScratchDriver",
        "--method=RandomChooser",
        "--max-concurrent=2",
        "--max-finished-jobs=8",
        "--polling-time=0.1",
        "config.pb",
    ]
    for starts in (1, 3, 5):
        with subprocess.Popen(argv, cwd=experiment.root) as controller:
            until(lambda starts=starts: len(_starts(experiment.root)) >= starts)
            controller.send_signal(signal.SIGKILL)
    again = [word for word in argv if not word.startswith("--driver")]
    done = subprocess.run(again, cwd=experiment.root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "my_queue:ScratchDriver" in done.stdout
    trials = json.loads(experiment.command("status", "--json").stdout)["trials"]
    assert (trials["complete"], trials["broken"]) == (8, 0)
    assert sorted(_starts(experiment.root)) == list(range(1, 9)), "each trial ran once"


def _starts(root: Path) -> list[int]:
    path = root / "starts.txt"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_the_example_of_the_testing_room_runs(tmp_path: Path) -> None:
    text = spearmint.drivers.testing.__doc__ or ""
    (example,) = re.findall(r"::\n\n((?:    .*\n|\n)+)", text)
    (tmp_path / "test_my_driver.py").write_text(re.sub("(?m)^    ", "", example))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_driver.py"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b1\d passed", done.stdout)
