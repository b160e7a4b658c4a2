"""What a search costs on Grid Engine: pauses between trials on a GPU, submission, idle GPUs, load.

    python benchmarks/sge_search.py [--seconds 10] [--trials 60] [--many 1000] [--json FILE]

Needs root: the cell, three hosts with two declared GPUs each, is the test bed's, real Grid Engine
on one machine. A trial sleeps, so that the figures are those of the queue and the controller.
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


def main(job_id, params):
    start = time.time()
    time.sleep(float(os.environ["SLEEP_S"]))
    span = {"gpu": os.environ["CUDA_VISIBLE_DEVICES"], "start": start, "end": time.time()}
    Path(os.environ["SPEARMINT_TRIAL_DIR"], "span.json").write_text(json.dumps(span))
    return float((params["x"] ** 2).sum())
"""
N_GPUS = 6


def experiment(cell, name):
    """Return a new experiment's directory in the cell."""
    root = cell.home / name
    root.mkdir()
    (root / "config.pb").write_text(CONFIG)
    (root / "sleeper.py").write_text(CODE)
    subprocess.run(["chown", "-R", f"{UID}:{UID}", str(root)], check=True)
    return root


def command(root, seconds, *options):
    """Return the search as users run it."""
    return ["spearmint", "--driver=SGE", f"--env=SLEEP_S={seconds}", *options, str(root)]


def spans(root):
    """Return what the trials recorded."""
    return [json.loads(path.read_text()) for path in root.glob("jobs/*/files/span.json")]


def pauses(found):
    """Return the seconds between a trial's end and the next one's start, on the same GPU."""
    by_gpu = {}
    for span in sorted(found, key=lambda span: span["start"]):
        by_gpu.setdefault(span["gpu"], []).append(span)
    return [
        after["start"] - before["end"] for row in by_gpu.values() for before, after in pairwise(row)
    ]


def search(cell, options, ahead):
    """Run one search; return its pauses and how busy the GPUs were until the last trial began."""
    root = experiment(cell, f"ahead-{ahead}")
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
    """Return the seconds that ``n`` proposals and their submissions take, one after the other."""
    root = experiment(cell, "many at once")
    argv = cell.enter(command(root, 600, f"--max-concurrent={n}"), uid=UID)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as controller:
        until(lambda: queued(cell) >= n, 120, 0.5)
        controller.terminate()
    written = sorted(path.stat().st_mtime for path in root.glob("jobs/*/trial.json"))
    cell.run(*command(root, 600, "--cancel"), uid=UID)
    return {"n": n, "submissions_s": (written[-1] - written[0]) * n / (n - 1)}


def queued(cell):
    """Return how many jobs the cell has."""
    return max(0, len(cell.run("qstat", "-u", "*").stdout.splitlines()) - 2)


def load(cell, n, watch_s=60.0):
    """Return the share of a core that a controller with ``n`` running jobs takes.

    The jobs sleep in place of a Python each, for which one machine's memory is too small.
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
    """Return how many jobs of the cell run."""
    return len(cell.run("qstat", "-u", "*", "-s", "r").stdout.splitlines()[2:])


def cpu_seconds(cell):
    """Return the CPU time of the controller and of the commands it has run."""
    pid = max(cell.master.processes("spearmint --driver"))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main():
    """Print the figures as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="that a trial takes")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--many", type=int, default=0, help="jobs for the controller's load")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = {
        "grid_engine": "8.1.9",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "trial_s": options.seconds,
        "trials": options.trials,
    }
    with Cell(slots=80) as cell:
        for ahead in (0, 3) if options.trials else ():
            figures[f"queue_ahead_{ahead}"] = search(cell, options, ahead)
            print(f"queue-ahead {ahead}:", json.dumps(figures[f"queue_ahead_{ahead}"]), flush=True)
        figures["submission"] = submission(cell)
        print("submission:", json.dumps(figures["submission"]), flush=True)
        if options.many:
            figures["load"] = load(cell, options.many)
            print("load:", json.dumps(figures["load"]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
