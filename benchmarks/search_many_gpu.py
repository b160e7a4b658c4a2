"""Compare a search whose networks train at once on one GPU with the same search, trial by trial.

    python benchmarks/search_many_gpu.py [--trials 64] [--batches 1,8,64] [--json FILE]

The search minimizes the validation loss over the rate, momentum and L2. Each search starts with an
empty directory. The time includes everything after the compilation of the kernels: proposals,
storage, the start of each training, epochs and evaluation. The rows are made once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SHAPES = (((64, 128, 10), 64), ((784, 256, 10), 128))
SPACE = {"lr": (1e-4, 1.0, "log"), "l2": (1e-7, 1e-2, "log"), "momentum": (0.0, 0.99)}
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
    """Return the seconds of a search, those of its proposals, and the best loss."""
    import pycuda_nn as nn
    import spearmint
    from pycuda_nn.spearmint_trials import run_trials

    train, valid = (
        nn.Dataset.from_arrays(*data(sizes[0], rows, part), task="classify")
        for part, rows in enumerate((options.rows, options.rows // 8))
    )
    backend: Any = "numpy"
    if options.backend == "cuda":
        backend = nn.CudaBackend(nn.CudaOptions(precision=options.precision))

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
            timed = Timed(one)
            run_trials(
                timed,  # type: ignore[arg-type]
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
    return {"seconds": seconds, "asking": timed.asking, "telling": timed.telling, "best": best}


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
        f"single trials (proposals {row['asking']:.2f} s, storage {row['telling']:.2f} s), best "
        f"loss {row['best']:.4f}"
    )


def plain(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options without the file."""
    return {name: value for name, value in vars(options).items() if name != "json"}


if __name__ == "__main__":
    main()
