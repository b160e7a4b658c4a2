"""Do the first hour of a new user with starmint, and with Optuna and its dashboard.

    python benchmarks/first_hour.py [--trials 30] [--repeats 3] [--method TPESampler] [--work DIR]

Each side has a new virtual environment, by pip without its cache: install, tune the XGBoost and the
PyTorch example, one trial at a time, and look at the result. The CPU seconds include all processes
of a step. PyTorch is not installed: its rows need a ``torch`` that PYTHONPATH has.
"""

import argparse
import ctypes
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "benchmarks" / "peers"
MODELS = ("xgboost", "pytorch")
LIBRARIES = ("xgboost-cpu", "scikit-learn")
PORT = 18081
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: wait for processes that a step leaves behind


class Side:
    """One of the two: its environment, its folder, and what it took.

    Attributes:
        rows: Wall and CPU seconds of each repeat, by step.
    """

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        self.rows = {}

    def measure(self, step, *commands):
        """Run commands one after another and note their time."""
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        for command in commands:
            self._run(*command)
        seconds = time.monotonic() - began
        _wait_for_children()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.note(step, seconds, cpu)

    def note(self, step, seconds, cpu):
        """Add a row and print it."""
        self.rows.setdefault(step, []).append((seconds, cpu))
        print(f"{self.folder.name} {step}: {seconds:.2f} s, CPU {cpu:.2f} s", flush=True)

    def _run(self, program, *arguments):
        log = self.folder / "log"
        with log.open("ab") as output:
            found = self.bin / program if (self.bin / program).exists() else program
            done = subprocess.run(
                [str(found), *map(str, arguments)], cwd=self.folder, stdout=output, stderr=output
            )
        if done.returncode:
            raise SystemExit(f"{program} {arguments} failed:\n{log.read_text()[-3000:]}")

    def install(self, *packages):
        """Make the environment."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        pip = ("python", "-m", "pip", "install", "-q", "--no-cache-dir")
        environment = (sys.executable, "-m", "venv", self.folder / "venv")
        self.measure("install", environment, (*pip, *packages, *LIBRARIES))


def _wait_for_children():
    """Wait for leftover processes of a command."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def search_ours(side, model, options):
    """Write the experiment, run it, and write its report."""
    side.measure("init", ("spearmint", "init", f"--template={model}", model))
    method = [f"--method={options.method}"] if options.method else []
    run = ("spearmint", *method, "-n1", f"--max-finished-jobs={options.trials}", model)
    side.measure(f"search, {model}", run)
    side.measure("report", ("spearmint", "report", model))


def search_theirs(side, model, options):
    """Run the script, and open the dashboard."""
    shutil.copy(PEERS / f"first_hour_{model}.py", side.folder)
    side.measure(f"search, {model}", ("python", f"first_hour_{model}.py", options.trials))
    began = time.monotonic()
    argv = [side.bin / "optuna-dashboard", f"--port={PORT}", "sqlite:///study.db"]
    with subprocess.Popen(argv, cwd=side.folder, stderr=subprocess.DEVNULL) as server:
        _until_answered(f"http://127.0.0.1:{PORT}/api/studies")
        seconds = time.monotonic() - began
        cpu = _cpu_seconds(server.pid)
        server.terminate()
    side.note("report", seconds, cpu)


def _until_answered(url):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - our own address
                answer.read()
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{url} does not answer")


def _cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def typed_lines(model):
    """Return the lines of the peer's script: all of it, and those after the model."""
    lines = (PEERS / f"first_hour_{model}.py").read_text().splitlines()
    search = lines[lines.index("# The search") :]
    return _code(lines), _code(search)


def _code(lines):
    return sum(bool(line.strip()) and not line.lstrip().startswith(("#", '"""')) for line in lines)


def print_rows(ours, theirs):
    """Print medians: wall and CPU seconds of both."""
    print(f"{'step':18}{'starmint':>10}{'CPU':>8}{'Optuna':>10}{'CPU':>8}")
    for step in dict.fromkeys((*ours.rows, *theirs.rows)):
        cells = [_medians(side.rows.get(step)) for side in (ours, theirs)]
        print(f"{step:18}{cells[0]}{cells[1]}")


def _medians(runs):
    if not runs:
        return f"{'-':>10}{'-':>8}"
    wall, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
    return f"{wall:10.2f}{cpu:8.2f}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3, help="of all steps but the installation")
    parser.add_argument("--reuse", action="store_true", help="the environments that --work has")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--method", help="the chooser of spearmint; default: its default")
    parser.add_argument(
        "--work", type=Path, help="a folder for the environments; default: a new one"
    )
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    work = options.work or Path(tempfile.mkdtemp(prefix="first_hour."))
    ours, theirs = Side(work / "starmint"), Side(work / "optuna")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    if not options.reuse:
        ours.install(f"{ROOT}[report]")
        theirs.install("optuna", "optuna-dashboard")
    for _ in range(options.repeats):
        for model in options.models:
            if model == "pytorch" and not _has_torch(ours):
                continue
            search_theirs(theirs, model, options)
            search_ours(ours, model, options)
            shutil.rmtree(ours.folder / model)
        (theirs.folder / "study.db").unlink()
    print_rows(ours, theirs)
    for model in MODELS:
        whole, search = typed_lines(model)
        print(f"lines typed, {model}: Optuna {whole}, {search} of them the search; starmint 0")
    print("commands typed: starmint 4 (install, init, search, report), Optuna 3")


def _has_torch(side):
    found = subprocess.run([side.bin / "python", "-c", "import torch"], capture_output=True)
    return found.returncode == 0


if __name__ == "__main__":
    main()
