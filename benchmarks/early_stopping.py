"""What a pruner saves: the search of examples/digits with and without one, at the same seeds.

    python benchmarks/early_stopping.py [--seeds 5] [--pruner median] [--json FILE]

Each search runs as users run it, 40 trials, two at once, but each training has 120 epochs instead
of 30: of shorter ones most is the start of Python. Seconds are the sum over the trials. The test
set is not looked at.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DIGITS = Path(__file__).parents[1] / "examples" / "digits"
TRIALS, EPOCHS = 40, 120


def search(seed, *options):
    """Return trial seconds, best validation loss and pruned trials of one search."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copy(DIGITS / "config.pb", root)
        code = (DIGITS / "digits.py").read_text()
        (root / "digits.py").write_text(code.replace("EPOCHS = 30", f"EPOCHS = {EPOCHS}"))
        command = [sys.executable, "-m", "spearmint", f"--max-finished-jobs={TRIALS}", "-n", "2"]
        subprocess.run(
            [*command, f"--grid-seed={seed}", *options, folder],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        status = subprocess.run(
            [sys.executable, "-m", "spearmint", "status", "--json", folder],
            check=True,
            capture_output=True,
        )
        found = json.loads(status.stdout)
        return found["seconds"], found["best"]["value"], found["trials"]["pruned"]


def main():
    """Print medians of both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pruner", default="median")
    parser.add_argument("--pruner-args", default="n_startup_trials=8,n_warmup_steps=20")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    pruned = (f"--pruner={options.pruner}", f"--pruner-args={options.pruner_args}")
    runs = {"none": [], options.pruner: []}
    for seed in range(1, options.seeds + 1):  # alternating: both see the same load
        runs["none"].append(search(seed))
        runs[options.pruner].append(search(seed, *pruned))
    print(f"{'pruner':12}{'trial seconds':>15}{'best loss':>11}{'pruned':>8}")
    for name, results in runs.items():
        seconds, best, count = (statistics.median(column) for column in zip(*results, strict=True))
        print(f"{name:12}{seconds:15.1f}{best:11.4f}{count:8g}")
    ratios = [
        with_[0] / without[0]
        for without, with_ in zip(runs["none"], runs[options.pruner], strict=True)
    ]
    about = {"python": platform.python_version(), "cores": os.cpu_count(), "seeds": options.seeds}
    about |= {"pruner": options.pruner, "pruner_args": options.pruner_args}
    print(f"median ratio of trial seconds {statistics.median(ratios):.2f}; {about}")
    if options.json:
        data = {"about": about, "ratios": ratios, "runs": runs}
        options.json.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    main()
