"""Measure a search on Grid Engine: pauses between trials on a GPU, submission, idle GPUs, load.

    python benchmarks/sge_search.py [--seconds 10] [--trials 60] [--many 1000] [--json FILE]
    python benchmarks/sge_search.py --imports sklearn.linear_model

With ``--imports`` it compares pilots that fork trials from a warm process with pilots that start a
process for each. Needs root. The cell of the test bed is a real Grid Engine on one machine, with
three hosts and two declared GPUs per host. Trials only sleep, so that the figures measure the queue
and the controller.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.testbed.cell import UID, Cell
from tests.waiting import until

CONFIG = """language: PYTHON
name: "sleeper"
variable { name: "x" type: FLOAT size: 2 min: 0 max: 1 }
"""
CODE = """import json, os, time
from pathlib import Path


{heading}


def main(job_id, params):
    start = time.time()
    time.sleep(float(os.environ["SLEEP_S"]))
    span = {{"gpu": os.environ["CUDA_VISIBLE_DEVICES"], "start": start, "end": time.time()}}
    Path(os.environ["SPEARMINT_TRIAL_DIR"], "span.json").write_text(json.dumps(span))
    return float((params["x"] ** 2).sum())
"""
NOT_FORKED = "os.environ.setdefault('ANY', '1')\n"  # such code is not forked
N_GPUS = 6


def experiment(cell, name, heading=""):
    """Create an experiment in the cell, with a line before its imports; return its directory."""
    root = cell.home / name
    root.mkdir()
    (root / "config.pb").write_text(CONFIG)
    (root / "sleeper.py").write_text(CODE.format(heading=heading))
    subprocess.run(["chown", "-R", f"{UID}:{UID}", str(root)], check=True)
    return root


def command(root, seconds, *options):
    """Return the command of the search."""
    return ["spearmint", "--driver=SGE", f"--env=SLEEP_S={seconds}", *options, str(root)]


def spans(root):
    """Return the time spans that the trials recorded."""
    return [json.loads(path.read_text()) for path in root.glob("jobs/*/files/span.json")]


def pauses(found):
    """Return the seconds between the end of a trial and the start of the next on the same GPU."""
    by_gpu = {}
    for span in sorted(found, key=lambda span: span["start"]):
        by_gpu.setdefault(span["gpu"], []).append(span)
    return [
        after["start"] - before["end"] for row in by_gpu.values() for before, after in pairwise(row)
    ]


def search(cell, options, ahead, name, heading=""):
    """Run a search; return the pauses, and the GPUs' busy share until the last trial started."""
    root = experiment(cell, name, heading)
    limit = f"--max-finished-jobs={options.trials}"
    argv = command(root, options.seconds, limit, f"--queue-ahead={ahead}", "--max-concurrent=6")
    done = cell.run(*argv, uid=UID, timeout_s=3600)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    found = spans(root)
    start, end = min(s["start"] for s in found), max(s["start"] for s in found)
    busy = sum(min(s["end"], end) - s["start"] for s in found)
    between = pauses(found)
    return {
        "pause_median_s": statistics.median(between),
        "pause_quartiles_s": statistics.quantiles(between, n=4),
        "gpu_busy_share": busy / (N_GPUS * (end - start)),
    }


def submission(cell, n=64):
    """Return the seconds for ``n`` proposals and submissions, one after the other."""
    root = experiment(cell, "many at once")
    argv = cell.enter(command(root, 600, f"--max-concurrent={n}"), uid=UID)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as controller:
        until(lambda: queued(cell) >= n, 120, 0.5)
        controller.terminate()
    written = sorted(path.stat().st_mtime for path in root.glob("jobs/*/trial.json"))
    cell.run(*command(root, 600, "--cancel"), uid=UID)
    return {"n": n, "submissions_s": (written[-1] - written[0]) * n / (n - 1)}


def queued(cell):
    """Return the number of jobs in the cell."""
    return max(0, len(cell.run("qstat", "-u", "*").stdout.splitlines()) - 2)


def load(cell, n, watch_s=60.0):
    """Return the share of a core that a controller with ``n`` running jobs uses.

    The jobs run ``sleep`` instead of Python: one machine does not have enough memory for Python.
    """
    conf = [line for line in cell.qconf("-sconf").splitlines() if not line.startswith("#")]
    text = "\n".join(conf).replace("65400-65500", f"65400-{65500 + n}") + "\n"
    cell.master.write("/root/global", text)
    cell.qconf("-Mconf", "/root/global")
    cell.qconf("-rattr", "queue", "slots", str(n // len(cell.names) + 1), "all.q")
    root = experiment(cell, "load")
    bin = root / "venv" / "bin"
    bin.mkdir(parents=True)
    (bin / "activate").touch()
    (bin / "python").write_text("#!/bin/sh\nexec sleep 100000\n")
    (bin / "python").chmod(0o755)
    need = [f"--venv={root}/venv", "--gpus=0", f"--max-concurrent={n}", "--method=RandomChooser"]
    argv = cell.enter(command(root, 0, *need), uid=UID)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as controller:
        until(lambda: running(cell) >= n, 900, 2.0)
        time.sleep(10)
        before = cpu_seconds(cell)
        time.sleep(watch_s)
        share = (cpu_seconds(cell) - before) / watch_s
        controller.terminate()
    return {"jobs": n, "share_of_a_core": share}


def running(cell):
    """Return the number of running jobs in the cell."""
    return len(cell.run("qstat", "-u", "*", "-s", "r").stdout.splitlines()[2:])


def cpu_seconds(cell):
    """Return the CPU time of the controller and of the commands it has run."""
    pid = max(cell.master.processes("spearmint --driver"))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def compare_starts(cell, options):
    """Print the pauses of pilots with and without a warm process, in alternating runs."""
    line = f"import {options.imports}\n"
    for repeat in range(options.repeats):
        for kind, before in (("forked", ""), ("processes", NOT_FORKED)):
            found = search(cell, options, 3, f"{kind}-{repeat}", before + line)
            print(f"{kind}:", json.dumps(found), "load", os.getloadavg()[0], flush=True)


def main():
    """Print each figure when it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=10.0, help="Duration of a trial in seconds. Default: 10.")
    add("--trials", type=int, default=60, help="Trials of a search; 0: no search. Default: 60.")
    add("--many", type=int, default=0, help="Running jobs to measure the load with. Default: 0.")
    add("--imports", metavar="MODULE", help="What trials import, to compare starts of trials.")
    add("--repeats", type=int, default=2, help="Runs to compare. Default: 2.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    options = parser.parse_args()
    figures = {
        "grid_engine": "8.1.9",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "trial_s": options.seconds,
        "trials": options.trials,
    }
    with Cell(slots=80) as cell:
        if options.imports:
            compare_starts(cell, options)
            return
        for ahead in (0, 3) if options.trials else ():
            name = f"queue_ahead_{ahead}"
            figures[name] = search(cell, options, ahead, name)
            print(f"{name}:", json.dumps(figures[name]), flush=True)
        figures["submission"] = submission(cell)
        print("submission:", json.dumps(figures["submission"]), flush=True)
        if options.many:
            figures["load"] = load(cell, options.many)
            print("load:", json.dumps(figures["load"]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
