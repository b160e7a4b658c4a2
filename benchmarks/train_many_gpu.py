"""Compare many networks trained at once on one GPU with one after the other, and with JAX's vmap.

    python benchmarks/train_many_gpu.py --precision bf16

All train momentum SGD on 65,536 rows, with 1,024 rows evaluated after each epoch (ours only).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
CASES = (
    ((64, 128, 10), 64, (1, 64)),
    ((784, 256, 10), 128, (1, 32, 128)),
    ((784, 512, 512, 10), 128, (1, 32, 128)),
)
ROWS, VALID_ROWS = 1 << 16, 1 << 10


def main() -> None:
    """Print the microseconds of a network's step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--precision", default="bf16")
    add("--optimizer", default="sgd", choices=("sgd", "adam"))
    add("--epochs", type=int, default=6, help="At least 3; the first and the last are not timed.")
    add("--skip-jax", action="store_true")
    add("--json", type=Path, metavar="FILE", help="Write the rows to this file.")
    options = parser.parse_args()
    rows = []
    for sizes, batch, counts in CASES:
        one = 0.0
        for count in counts:
            ours, loss = _ours(sizes, batch, count, options)
            jax = 0.0
            if count > 1 and not options.skip_jax:
                jax = _jax(sizes, batch, count, options.precision, options.optimizer)
            one = one or ours
            row = {"sizes": sizes, "batch": batch, "networks": count, "ours": ours, "jax": jax}
            rows.append(
                {
                    **row,
                    "loss": loss,
                    "precision": options.precision,
                    "optimizer": options.optimizer,
                }
            )
            name = "-".join(map(str, sizes))
            print(
                f"{name} b{batch} {options.optimizer} {options.precision} K={count}: {ours:.2f} us "
                f"a network's step, {one / ours:.1f} times one, loss {loss:.4f}; JAX {jax:.2f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def data(width: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose class is the largest of ten projections."""
    projection = np.random.default_rng(0).standard_normal((width, 10), dtype=np.float32)
    x = np.random.default_rng(seed).standard_normal((rows, width), dtype=np.float32)
    return x, (x @ projection).argmax(axis=1)


def _ours(
    sizes: tuple[int, ...], batch: int, count: int, options: argparse.Namespace
) -> tuple[float, float]:
    """Return the microseconds of a step, and the last training loss of the last network."""
    import pycuda_nn as nn

    train, valid = (
        nn.Dataset.from_arrays(*data(sizes[0], n, n), task="classify") for n in (ROWS, VALID_ROWS)
    )
    configs = [
        nn.TrainConfig(
            hidden=sizes[1:-1],
            optimizer=options.optimizer,
            lr=lr,
            batch_size=batch,
            epochs=options.epochs,
            scale="none",
            seed=k,
        )
        for k, lr in enumerate(np.geomspace(1e-3, 2e-2, count))
    ]
    ended: list[float] = []
    losses: list[float] = []

    def note(number: int, report: nn.EpochReport) -> None:
        if number == count - 1:
            ended.append(time.perf_counter())
            losses.append(report.train_loss)

    backend = nn.CudaBackend(nn.CudaOptions(precision=options.precision))
    if count == 1:
        nn.train(configs[0], train, valid, backend=backend, on_epoch=lambda r: note(0, r))
    else:
        nn.train_many(configs, train, valid, backend=backend, on_epoch=note)
    seconds = statistics.median(np.diff(ended)[:-1])  # in the last epoch all networks end
    return seconds / (ROWS // batch) / count * 1e6, losses[-1]


def _jax(sizes: tuple[int, ...], batch: int, count: int, precision: str, optimizer: str) -> float:
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    words = [",".join(map(str, sizes)), str(batch), str(count), precision, optimizer]
    done = subprocess.run(
        [sys.executable, str(HERE / "peers/jax_many.py"), *words],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stderr[-800:], file=sys.stderr)
        return float("nan")
    return float(json.loads(done.stdout.splitlines()[-1])["us"])


if __name__ == "__main__":
    main()
