"""Show up to which factor a larger minibatch with a scaled learning rate trains as well.

    python benchmarks/scale_batch.py [--seeds 8] [--factors 2,4,8,16,32] [--backend numpy]
    python benchmarks/scale_batch.py --json FILE --rst FILE --plot FILE.svg

Each training sees the same rows for the same number of epochs. The rows are normally distributed,
their class is the largest of ten projections; the error is that of other rows. The base has a
warm-up of an epoch, too. With a factor k the minibatch is k times as large, and the rate is

    linear           k times as high, after a warm-up of an epoch (--scale-batch k)
    no warm-up       k times as high from the first step
    sqrt             sqrt(k) times as high, after a warm-up (--scale-batch k --scale-rule sqrt)
    same rate        not changed

A mean error is marked if it is at least half a percentage point above that of the base. With the
default settings it takes about two minutes of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must precede the import of numpy

import numpy as np

import pycuda_nn as nn

FEATURES, CLASSES = 64, 10
RATE, BATCH = 0.1, 128
RATES = (0.05, 0.2, 0.4)  # of the base, to show that RATE is not below the best
COMMAND = "python benchmarks/scale_batch.py"
WORSE = 0.005
METHODS = ("linear", "no warm-up", "sqrt", "same rate")
BASE = nn.TrainConfig(
    hidden=(128, 128), optimizer="sgd", lr=RATE, momentum=0.9, schedule="cosine",
    batch_size=BATCH, epochs=10, warmup_epochs=1, scale="none",
)  # fmt: skip
Errors = list[float]


def rows(n: int, seed: int) -> nn.Dataset:
    """Return ``n`` rows; all seeds have the same projections."""
    projections = np.random.default_rng(0).standard_normal((FEATURES, CLASSES), dtype=np.float32)
    x = np.random.default_rng((1, seed)).standard_normal((n, FEATURES), dtype=np.float32)
    return nn.Dataset.from_arrays(x, (x @ projections).argmax(axis=1), task="classify")


def config_for(method: str, factor: int) -> dict[str, Any]:
    """Return the settings that differ from the base."""
    if method in ("linear", "sqrt"):
        return {"scale_batch": factor, "scale_rule": method}
    if method == "same rate":
        return {"batch_size": BATCH * factor}
    return {"batch_size": BATCH * factor, "lr": RATE * factor, "warmup_epochs": 0}


def errors(changes: Mapping[str, Any], seeds: int, data: Sequence[nn.Dataset], to: Any) -> Errors:
    """Return the final error of each seed; 1 for a training that diverged."""
    found = []
    for seed in range(seeds):
        config = nn.TrainConfig(**{**BASE.as_dict(), **changes, "seed": seed})
        try:
            last = nn.train(config, *data, backend=to).history[-1]
            found.append(float(last.valid_error or 0.0))
        except nn.TrainingDiverged:
            found.append(1.0)
    return found


def is_worse(found: Errors, base: Errors) -> bool:
    """Return whether the mean is higher by at least half a percentage point."""
    return statistics.mean(found) - statistics.mean(base) >= WORSE


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Train everything, and print each result as it comes."""
    data = rows(args.rows, 0), rows(8192, 1)
    report: dict[str, Any] = {
        "machine": machine(args.backend), "rows": args.rows, "seeds": args.seeds,
        "base": errors({}, args.seeds, data, args.backend), "rates": {}, "factors": {},
    }  # fmt: skip
    print(f"base: {cell(report['base'], report['base'])}", file=sys.stderr, flush=True)
    for rate in RATES:
        report["rates"][rate] = errors({"lr": rate}, args.seeds, data, args.backend)
    for factor in args.factors:
        report["factors"][factor] = {}
        for method in METHODS:
            found = errors(config_for(method, factor), args.seeds, data, args.backend)
            report["factors"][factor][method] = found
            line = f"{factor} x, {method}: {cell(found, report['base'])}"
            print(line, file=sys.stderr, flush=True)
    return report


def machine(backend: str) -> dict[str, str]:
    """Return what the figures depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    return {"cpu": cpu, "backend": backend, **versions}


def cell(found: Errors, base: Errors) -> str:
    """Return the mean error and its standard error in percent; ``*`` if it is worse."""
    failed = sum(error == 1.0 for error in found)
    if failed:
        return f"{failed} of {len(found)} diverged \\*"
    spread = statistics.stdev(found) / len(found) ** 0.5
    worse = " \\*" if found is not base and is_worse(found, base) else ""
    return f"{100 * statistics.mean(found):.2f} ± {100 * spread:.2f}{worse}"


def table(report: Mapping[str, Any]) -> str:
    """Return the table in reStructuredText, with its rates and its machine."""
    base, n = report["base"], report["rows"]
    heads = ["factor", "minibatch", "steps", *METHODS]
    lines = [["1", f"{BATCH}", f"{steps(1, n):,}", cell(base, base), "", "", ""]]
    for key, methods in report["factors"].items():
        factor = int(key)  # text in a report of --json
        cells = [cell(methods[method], base) for method in METHODS]
        lines.append([f"{factor}", f"{BATCH * factor:,}", f"{steps(factor, n):,}", *cells])
    rates = ", ".join(
        f"{rate}: {cell(found, base)}" for rate, found in report["rates"].items()
    )  # fmt: skip
    facts = report["machine"]
    note = (
        f"Error in %, mean of {report['seeds']} seeds ± its standard error. ``*``: at least half a "
        "percentage point above factor 1. Factor 1 with other "
        f"learning rates than {RATE}: {rates}. {n:,} rows of {FEATURES} features, {CLASSES} "
        f"classes; network {FEATURES}-128-128-{CLASSES}, {BASE.epochs} epochs, the first of them a "
        f"warm-up, SGD with momentum 0.9, cosine. {facts['cpu']}, backend {facts['backend']}, "
        f"Python {facts['python']}, numpy {facts['numpy']}: ``{COMMAND}``."
    )
    wrapped = textwrap.wrap(note, 100, break_on_hyphens=False, break_long_words=False)
    written = ".. Written by benchmarks/scale_batch.py --rst; do not edit."
    return "\n".join([written, "", *simple_table(heads, lines), "", *wrapped, ""])


def steps(factor: int, n: int) -> int:
    """Return the steps of a training."""
    return BASE.epochs * -(-n // (BATCH * factor))


def simple_table(heads: list[str], lines: list[list[str]]) -> list[str]:
    """Return the lines of a simple table."""
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)

    def text(cells: list[str]) -> str:
        return "  ".join(map(str.ljust, cells, widths)).rstrip()

    return [rule, text(heads), rule, *(text(line) for line in lines), rule]


def plot(report: Mapping[str, Any], file: Path) -> None:
    """Write an SVG: the mean error of each method over the factor."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    factors = [1, *map(int, report["factors"])]
    with mpl.rc_context({"svg.hashsalt": "scale_batch", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for method, marker in zip(METHODS, "osv^", strict=True):
            found = [report["base"], *(each[method] for each in report["factors"].values())]
            means = [100 * statistics.mean(values) for values in found]
            axes.plot(factors, means, marker=marker, label=method)
        axes.axhline(100 * statistics.mean(report["base"]), color="grey", linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(factors, map(str, factors))
        axes.set_yticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
        axes.minorticks_off()
        axes.set_xlabel("factor of the minibatch")
        axes.set_ylabel("error, %")
        axes.legend()
        figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    """Measure, or read a report; print the table, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="trainings of each cell")
    parser.add_argument("--factors", default="2,4,8,16,32", help="factors of the minibatch")
    parser.add_argument("--rows", type=int, default=32768, help="training rows")
    parser.add_argument("--backend", default="numpy", help="numpy, or cuda on a GPU")
    parser.add_argument("--json", type=Path, help="write all errors to this file")
    parser.add_argument("--rst", type=Path, help="write the table to this file")
    parser.add_argument("--plot", type=Path, help="write an SVG to this file")
    parser.add_argument("--read", type=Path, help="read errors written by --json; train nothing")
    args = parser.parse_args()
    args.factors = [int(factor) for factor in args.factors.split(",")]
    if args.seeds < 2:
        parser.error("--seeds: at least 2 are needed for a standard error")
    report = json.loads(args.read.read_text()) if args.read else measure(args)
    text = table(report)
    print(text)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    if args.rst:
        args.rst.write_text(text)
    if args.plot:
        plot(report, args.plot)


if __name__ == "__main__":
    main()
