"""Compare the numpy trainer with scikit-learn's MLPClassifier on the same work.

Both use the same layers, minibatches, epochs, optimizer, learning rate, L2 and float32 rows. Both
run without dropout and Nesterov momentum, with a constant rate, and without validation during
training. They alternate in one process, so that a busy machine slows both. Times are medians of the
repeats, the ratio is the median of the ratios of neighbouring runs, and validation errors are means
over the seeds. scikit-learn divides its penalty by the rows of a minibatch: alpha = l2 * batch.

    python benchmarks/trainer_numpy.py --repeats 7 --json benchmarks/results/trainer_numpy.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

THREADS = os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must precede the import of numpy

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402

import pycuda_nn as nn  # noqa: E402

L2 = 1e-4


@dataclass(frozen=True, kw_only=True)
class Work:
    """One row of the table."""

    data: str
    hidden: tuple[int, ...]
    batch: int
    epochs: int
    optimizer: str
    lr: float


WORK = (
    Work(data="digits", hidden=(128, 64), batch=64, epochs=30, optimizer="adam", lr=1e-3),
    Work(data="digits", hidden=(128, 64), batch=64, epochs=30, optimizer="sgd", lr=0.05),
    Work(data="synthetic", hidden=(256, 128), batch=128, epochs=4, optimizer="adam", lr=1e-3),
    Work(data="synthetic", hidden=(256, 128), batch=128, epochs=4, optimizer="sgd", lr=0.05),
)


def synthetic() -> nn.Dataset:
    """Return 62,500 rows of 256 columns (50,000 for training), labelled by a random network."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((62_500, 256), dtype=np.float32)
    hidden = np.tanh(x @ rng.standard_normal((256, 32), dtype=np.float32) / 16)
    scores = hidden @ rng.standard_normal((32, 10), dtype=np.float32)
    return nn.Dataset.from_arrays(x, scores.argmax(axis=1), name="synthetic")


def rows(name: str) -> tuple[nn.Dataset, nn.Dataset]:
    """Return training and validation rows; the digits are scaled to 0 .. 1 for both trainers."""
    data = nn.load_data("digits") if name == "digits" else synthetic()
    if name == "digits":
        data = nn.Dataset.from_arrays(data.x / 16, data.y, name="digits")
    train, valid, _ = nn.split(data, (0.8, 0.2, 0.0), seed=0)
    return train, valid


def ours(work: Work, train: nn.Dataset, valid: nn.Dataset, seed: int) -> tuple[float, float]:
    """Return (seconds, validation error) of a training by pycuda_nn."""
    config = nn.TrainConfig(
        hidden=work.hidden, batch_size=work.batch, epochs=work.epochs, optimizer=work.optimizer,
        lr=work.lr, l2=L2, scale="none", seed=seed,
    )  # fmt: skip
    started = time.perf_counter()
    result = nn.train(config, train, backend="numpy")
    return time.perf_counter() - started, nn.evaluate(result.model, valid).error


def theirs(work: Work, train: nn.Dataset, valid: nn.Dataset, seed: int) -> tuple[float, float]:
    """Return (seconds, validation error) of a training by scikit-learn."""
    model = MLPClassifier(
        work.hidden, solver=work.optimizer, alpha=L2 * work.batch, batch_size=work.batch,
        learning_rate_init=work.lr, max_iter=work.epochs, tol=0.0, n_iter_no_change=10_000,
        momentum=0.9, nesterovs_momentum=False, random_state=seed,
    )  # fmt: skip
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "maximum iterations reached" is intended
        model.fit(train.x, train.y)
    seconds = time.perf_counter() - started
    if model.coefs_[0].dtype != np.float32:
        raise TypeError("scikit-learn did not train in float32")
    return seconds, 1.0 - float(model.score(valid.x, valid.y))


def compare(work: Work, repeats: int) -> dict[str, Any]:
    """Run both trainers ``repeats`` times in turns; alternate which of them runs first."""
    train, valid = rows(work.data)
    runs: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    sides: list[tuple[str, Callable[..., tuple[float, float]]]] = [
        ("ours", ours),
        ("theirs", theirs),
    ]
    for _, side in sides:  # warm-up: imports and page faults
        side(work, train, valid, 99)
    for repeat in range(repeats):
        for name, side in sides if repeat % 2 == 0 else sides[::-1]:
            runs[name].append(side(work, train, valid, repeat))
    differences = [o[1] - t[1] for o, t in zip(runs["ours"], runs["theirs"], strict=True)]
    ratios = [t[0] / o[0] for o, t in zip(runs["ours"], runs["theirs"], strict=True)]
    return {
        **asdict(work),
        "rows": len(train),
        "seconds_ours": statistics.median(run[0] for run in runs["ours"]),
        "seconds_sklearn": statistics.median(run[0] for run in runs["theirs"]),
        "ratio": statistics.median(ratios),
        "ratio_lowest": min(ratios),
        "error_ours": statistics.fmean(run[1] for run in runs["ours"]),
        "error_sklearn": statistics.fmean(run[1] for run in runs["theirs"]),
        "error_difference_se": _standard_error(differences),
        "errors_ours": [run[1] for run in runs["ours"]],
        "errors_sklearn": [run[1] for run in runs["theirs"]],
    }


def _standard_error(values: list[float]) -> float:
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def machine() -> dict[str, Any]:
    """Return the machine and the versions of libraries."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "blas_threads": THREADS,
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def main() -> None:
    """Print the table; exit 1 if a row is slower than scikit-learn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    add = parser.add_argument
    add("--repeats", type=int, default=7, help="Number of runs of each trainer. Default: 7.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    args = parser.parse_args()
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(
        "data       layers    opt   ours s  sklearn s  times as fast (lowest)  "
        "mean error ours, sklearn (s.e. of the difference)"
    )
    table = []
    for work in WORK:
        row = compare(work, args.repeats)
        table.append(row)
        print(
            f"{work.data:<10} {'-'.join(map(str, work.hidden)):<9} {work.optimizer:<5} "
            f"{row['seconds_ours']:<7.3f} {row['seconds_sklearn']:<10.3f} "
            f"{row['ratio']:<5.2f} ({row['ratio_lowest']:.2f}) "
            f"{'':<10} {row['error_ours']:.4f}, {row['error_sklearn']:.4f} "
            f"({row['error_difference_se']:.4f})",
            flush=True,
        )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(
            json.dumps({"machine": facts, "repeats": args.repeats, "rows": table}, indent=1) + "\n"
        )
    sys.exit(any(row["ratio"] < 1.0 for row in table))


if __name__ == "__main__":
    main()
