"""Measure what pruners save, by replaying the reports of searches of examples/digits.

    python benchmarks/early_stopping.py [--seeds 4] [--curves FILE] [--json FILE]

Each search has 40 trials, two at a time, as a user would run it, but with 120 epochs per training
instead of 30: in shorter trainings the start of Python dominates. The searches prune no trial.
Then each pruner gets the reports in the order of the trials, and the trials that it would have
pruned are counted. All pruners are therefore compared on the same trials, without the noise between
searches. The test set is not used.
"""

from __future__ import annotations

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

import optuna

from spearmint.choosers import parse_method_args
from spearmint.choosers.pruners import make_pruner

DIGITS = Path(__file__).parents[1] / "examples" / "digits"
TRIALS, EPOCHS = 40, 120
PRUNERS = (
    ("median", "n_startup_trials=8,n_warmup_steps=20"),
    ("percentile", "percentile=25,n_startup_trials=8,n_warmup_steps=20"),
    ("halving", "min_resource=10,reduction_factor=2"),
    ("halving", "min_resource=20,reduction_factor=3"),
    ("hyperband", f"min_resource=10,max_resource={EPOCHS},reduction_factor=3"),
)


def search(seed: int) -> list[dict]:
    """Return loss, seconds and reports of each trial of a search without a pruner."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copy(DIGITS / "config.pb", root)
        code = (DIGITS / "digits.py").read_text()
        (root / "digits.py").write_text(code.replace("EPOCHS = 30", f"EPOCHS = {EPOCHS}"))
        command = [sys.executable, "-m", "spearmint", f"--max-finished-jobs={TRIALS}", "-n", "2"]
        command += [f"--grid-seed={seed}", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        study = optuna.load_study(study_name=None, storage=f"sqlite:///{root / 'spearmint.db'}")
        return [
            {
                "value": trial.value,
                "seconds": trial.user_attrs["seconds"],
                "reports": [trial.intermediate_values[e] for e in range(1, EPOCHS + 1)],
            }
            for trial in study.get_trials(deepcopy=False)
        ]


def replay(trials: list[dict], name: str, args: str) -> tuple[float, float, int]:
    """Return the remaining fraction of time, the relative best loss, and the number of pruned.

    The best loss of the trials that are not pruned is relative to the best loss of all trials.
    """
    study = optuna.create_study(pruner=make_pruner(name, parse_method_args(args)))
    spent, values = 0.0, []
    for trial in trials:
        steps = _steps(study, trial)
        # The reports are those of the first of two trainings; a trial that continues runs both.
        share = 1.0 if steps is None else steps / (2 * EPOCHS)
        spent += share * trial["seconds"]
        if steps is None:
            values.append(trial["value"])
    whole = sum(trial["seconds"] for trial in trials)
    best = min(trial["value"] for trial in trials)
    return spent / whole, min(values) / best, len(trials) - len(values)


def _steps(study: optuna.Study, trial: dict) -> int | None:
    """Replay a trial in ``study``; return the epochs until it was pruned, None if it was not."""
    asked = study.ask()
    for epoch, value in enumerate(trial["reports"], 1):
        asked.report(value, epoch)
        if asked.should_prune():
            study.tell(asked, state=optuna.trial.TrialState.PRUNED)
            return epoch
    study.tell(asked, trial["value"])
    return None


def main() -> None:
    """Print a row for each pruner."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=int, default=4, help="Number of searches. Default: 4.")
    add("--curves", type=Path, metavar="FILE", help="Read the trials, or write them if missing.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if options.curves and options.curves.exists():
        runs = json.loads(options.curves.read_text())
    else:
        runs = [search(seed) for seed in range(1, options.seeds + 1)]
        if options.curves:
            options.curves.write_text(json.dumps(runs))
    about = {"python": platform.python_version(), "cores": os.cpu_count(), "searches": len(runs)}
    print(
        f"{'pruner':<12}{'':<54}{'time left':>10}{'best loss':>11}{'pruned':>7}   medians; {about}"
    )
    rows = []
    for name, args in PRUNERS:
        each = [replay(trials, name, args) for trials in runs]
        rows.append({"pruner": name, "args": args, "searches": each})
        time, loss, pruned = (statistics.median(column) for column in zip(*each, strict=True))
        losses = ", ".join(f"{run[1]:.3f}" for run in each)
        print(f"{name:<12}{args:<54}{time:10.2f}{loss:11.3f}{pruned:7g}   {losses}")
    if options.json:
        options.json.write_text(json.dumps({"about": about, "pruners": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
