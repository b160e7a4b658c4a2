"""What a pruner saves: the search of examples/digits with and without one, at the same seeds.

    python benchmarks/early_stopping.py [--seeds 5] [--pruner median] [--json FILE]

Each search runs as users run it, 40 trials, two at once, but each training has 120 epochs instead
of 30: of shorter ones most is the start of Python. Compared are the seconds, summed over the
trials, until a search has the loss that both reach in the end. The test set is not looked at.
"""

import argparse
import itertools
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
    """Return (seconds of all trials so far, validation loss or None if pruned) of each trial."""
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
        exported = subprocess.run(
            [sys.executable, "-m", "spearmint", "export", "--json", folder],
            check=True,
            capture_output=True,
        )
        trials = json.loads(exported.stdout)
    spent = itertools.accumulate(trial["seconds"] for trial in trials)
    return list(zip(spent, (trial["value"] for trial in trials), strict=True))


def best(run):
    """Return the lowest loss of a search."""
    return min(value for _, value in run if value is not None)


def until(run, loss):
    """Return the trial seconds after which a search had ``loss``."""
    return next(spent for spent, value in run if value is not None and value <= loss)


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
        seconds = statistics.median(run[-1][0] for run in results)
        loss = statistics.median(best(run) for run in results)
        count = statistics.median(sum(value is None for _, value in run) for run in results)
        print(f"{name:12}{seconds:15.1f}{loss:11.4f}{count:8g}")
    whole, equal = [], []
    for without, with_ in zip(runs["none"], runs[options.pruner], strict=True):
        loss = max(best(without), best(with_))
        whole.append(with_[-1][0] / without[-1][0])
        equal.append(until(with_, loss) / until(without, loss))
    about = {"python": platform.python_version(), "cores": os.cpu_count(), "seeds": options.seeds}
    about |= {"pruner": options.pruner, "pruner_args": options.pruner_args}
    print(f"ratios of trial seconds, pruned to not: all trials {_listed(whole)}")
    print(f"until both have the same loss {_listed(equal)}; {about}")
    if options.json:
        data = {"about": about, "whole": whole, "equal": equal, "runs": runs}
        options.json.write_text(json.dumps(data) + "\n")


def _listed(ratios):
    return f"{', '.join(f'{r:.2f}' for r in ratios)} (median {statistics.median(ratios):.2f})"


if __name__ == "__main__":
    main()
