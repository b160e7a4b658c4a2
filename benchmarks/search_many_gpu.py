"""Compare a search whose networks train at once on one GPU with the same search, trial by trial.

    python benchmarks/search_many_gpu.py [--trials 64] [--batches 1,8,64] [--json FILE]

The search minimizes the validation loss over the rate, momentum and L2. Each search starts with an
empty directory. The time includes everything after the compilation of the kernels and the imports.
The rows are made once. A line for each search has its parts:

    start       create the directory, the database and its study
    proposals   ask for trials, and store them
    opening     copy rows and parameters to the GPU, load kernels, allocate and free memory
    epochs      train and evaluate
    storage     store results and values of epochs
    other       settings, initial parameters, results, history

``--search`` shows the parts of a search whose trainings take no time: of the chooser and the
storage alone, without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

SHAPES = (((64, 128, 10), 64), ((784, 256, 10), 128))
SPACE = {"lr": (1e-4, 1.0, "log"), "l2": (1e-7, 1e-2, "log"), "momentum": (0.0, 0.99)}
PARTS = ("start", "proposals", "opening", "epochs", "storage", "other")
NOISE = 2.0  # of the scores that define the class: no network predicts all rows


def main() -> None:
    """Print the seconds and the best loss of each search."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--trials", type=int, default=64)
    add("--batches", default="1,8,64", help="Networks at once in each search.")
    add("--epochs", type=int, default=30)
    add("--rows", type=int, default=1 << 15)
    add("--seeds", type=int, default=1, help="Searches of each kind.")
    add("--precision", default="bf16")
    add("--method", default="GPEIOptChooser")
    add("--backend", default="cuda", choices=("cuda", "numpy"))
    add("--shapes", default="0,1", help="Numbers of the networks: 64-128-10, 784-256-10.")
    add("--search", action="store_true", help="Train nothing: a formula is the loss.")
    add("--json", type=Path, metavar="FILE", help="Write the rows to this file.")
    options = parser.parse_args()
    found = []
    for sizes, batch_size in (SHAPES[int(number)] for number in options.shapes.split(",")):
        single = 0.0
        for batch in map(int, options.batches.split(",")):
            short = argparse.Namespace(**{**vars(options), "trials": batch, "epochs": 1})
            search(sizes, batch_size, batch, 0, short)  # compiles the kernels and times the paths
            results = [
                search(sizes, batch_size, batch, seed, options) for seed in range(options.seeds)
            ]
            row = summary(sizes, batch, results)
            single = single or row["seconds"]
            found.append({**row, "of_single": row["seconds"] / single})
            print(line(found[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"options": plain(options), "rows": found}, indent=1))


def search(
    sizes: tuple[int, ...], batch_size: int, batch: int, seed: int, options: argparse.Namespace
) -> dict[str, float]:
    """Return the seconds of a search and of its parts, and the best loss."""
    import pycuda_nn as nn
    import spearmint
    from pycuda_nn.backends import pick
    from pycuda_nn.spearmint_trials import run_trials

    train, valid = (
        nn.Dataset.from_arrays(*data(sizes[0], rows, part), task="classify")
        for part, rows in enumerate((options.rows, options.rows // 8))
    )
    inner: Any = pick("numpy")
    if options.backend == "cuda":
        inner = nn.CudaBackend(nn.CudaOptions(precision=options.precision))
    backend = timed_backend(inner)

    def config(params: dict[str, float]) -> nn.TrainConfig:
        return nn.TrainConfig(
            hidden=sizes[1:-1],
            optimizer="sgd",
            batch_size=batch_size,
            epochs=options.epochs,
            seed=1,
            **params,
        )

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with spearmint.Search(SPACE, directory=folder, method=options.method, seed=seed) as one:
            start, timed = time.perf_counter() - began, Timed(one)
            if options.search:
                formulas(timed, options.trials, batch, options.epochs)
            else:
                run_trials(
                    timed,
                    config,
                    train,
                    valid,
                    trials=options.trials,
                    batch=batch,
                    monitor="loss",
                    backend=backend,
                )
            best = one.best.value
        seconds = time.perf_counter() - began
    parts = {"start": start, "proposals": timed.asking, **backend.seconds, "storage": timed.telling}
    return {"seconds": seconds, **parts, "other": seconds - sum(parts.values()), "best": best}


def formulas(search: Any, trials: int, batch: int, epochs: int) -> None:
    """Ask for trials and tell the values of a formula that is like the loss of a network."""
    random = np.random.default_rng(1)
    for first in range(0, trials, batch):
        asked = search.ask_many(min(batch, trials - first))
        with search.one_transaction():
            for trial in asked:
                rate, momentum = np.log10(trial.params["lr"]), trial.params["momentum"]
                loss = 0.5 + 0.1 * (rate + 1.3 + momentum) ** 2 + 0.004 * random.standard_normal()
                curve = {k: float(loss + 1 / k) for k in range(epochs, 0, -max(1, epochs // 8))}
                search.tell(trial, float(loss), reports=curve)


def timed_backend(inner: Any) -> Any:
    """Return a backend that trains on ``inner`` and counts the seconds of opening and epochs."""
    from pycuda_nn.protocols import Backend

    class Timing(Backend):
        name = inner.name
        missing = inner.missing
        seconds: ClassVar[dict[str, float]] = {"opening": 0.0, "epochs": 0.0}

        def open(self, *words: Any) -> Any:
            return inner.open(*words)

        def open_many(self, *words: Any) -> Any:
            began = time.perf_counter()
            group = inner.open_many(*words)
            self.seconds["opening"] += time.perf_counter() - began
            run, close = group.run_epochs, group.close

            def run_epochs(inputs: Any) -> Iterator[Any]:
                began = time.perf_counter()
                for found in run(inputs):
                    self.seconds["epochs"] += time.perf_counter() - began
                    yield found
                    began = time.perf_counter()

            def close_group() -> None:
                began = time.perf_counter()
                close()
                self.seconds["opening"] += time.perf_counter() - began

            group.run_epochs, group.close = run_epochs, close_group
            return group

    return Timing()


class Timed:
    """A search that counts the seconds of its proposals and of its storage."""

    def __init__(self, search: Any) -> None:
        self._search, self.asking, self.telling = search, 0.0, 0.0

    def ask_many(self, count: int) -> Any:
        """Return new trials."""
        began = time.perf_counter()
        try:
            return self._search.ask_many(count)
        finally:
            self.asking += time.perf_counter() - began

    def tell(self, *words: Any, **more: Any) -> None:
        """Store a result."""
        self._counted(self._search.tell, *words, **more)

    def report(self, *words: Any) -> bool:
        """Store an intermediate value."""
        return bool(self._counted(self._search.report, *words))

    def report_many(self, *words: Any) -> bool:
        """Store intermediate values."""
        return bool(self._counted(self._search.report_many, *words))

    @contextlib.contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Store everything that the block tells at its end."""
        block = self._search.one_transaction()
        self._counted(block.__enter__)
        try:
            yield
        finally:
            self._counted(block.__exit__, None, None, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)

    def _counted(self, call: Any, *words: Any, **more: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*words, **more)
        finally:
            self.telling += time.perf_counter() - began


def data(width: int, rows: int, part: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose class is the largest of ten projections with noise."""
    projection = np.random.default_rng(0).standard_normal((width, 10), dtype=np.float32)
    random = np.random.default_rng(1 + part)
    x = random.standard_normal((rows, width), dtype=np.float32)
    scores = x @ projection + NOISE * random.standard_normal((rows, 10), dtype=np.float32)
    return x, scores.argmax(axis=1)


def summary(sizes: tuple[int, ...], batch: int, results: list[dict[str, float]]) -> dict[str, Any]:
    """Return the median of each value over the searches."""
    medians = {name: float(np.median([one[name] for one in results])) for name in results[0]}
    return {"network": "-".join(map(str, sizes)), "batch": batch, **medians, "searches": results}


def line(row: dict[str, Any]) -> str:
    """Return a row as text."""
    return (
        f"{row['network']} batch {row['batch']}: {row['seconds']:.2f} s, {row['of_single']:.3f} of "
        f"single trials, best loss {row['best']:.4f} ("
        + ", ".join(f"{part} {row[part]:.2f}" for part in PARTS)
        + ")"
    )


def plain(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options without the file."""
    return {name: value for name, value in vars(options).items() if name != "json"}


if __name__ == "__main__":
    main()
