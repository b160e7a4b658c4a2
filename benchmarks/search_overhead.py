"""Measure the overhead of a trial: a search of 100 empty trials, two at a time.

    python benchmarks/search_overhead.py [--repeats 3] [--json FILE]

The search uses the ``spearmint`` command, RandomChooser, the local driver and SQLite.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = 'language: PYTHON\nname: "empty"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
CODE = "def main(job_id, params):\n    return 0.0\n"
TRIALS = 100


def search_seconds():
    """Return the wall time of a search of empty trials, including the start of the command."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "config.pb").write_text(CONFIG)
        (root / "empty.py").write_text(CODE)
        options = ["--max-concurrent=2", f"--max-finished-jobs={TRIALS}", "--method=RandomChooser"]
        start = time.perf_counter()
        command = [sys.executable, "-m", "spearmint", *options, folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def interpreter_seconds():
    """Return the wall time of an interpreter that imports numpy: the minimum for a trial."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    return time.perf_counter() - start


def main():
    """Print the median of several searches and the minimum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="Number of searches. Default: 3.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    options = parser.parse_args()
    seconds = [search_seconds() for _ in range(options.repeats)]
    floor = statistics.median(interpreter_seconds() for _ in range(10))
    figures = {
        "seconds_a_trial": statistics.median(seconds) / TRIALS,
        "seconds_a_trial_each": [value / TRIALS for value in seconds],
        "python_and_numpy_seconds": floor,
        "trials": TRIALS,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    print(f"{figures['seconds_a_trial']:.3f} s per trial (median of {options.repeats} searches)")
    print(f"{floor:.3f} s to start Python with numpy; two trials run on {os.cpu_count()} cores")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
