"""Measure several simultaneous trainings on one GPU: rows per second in total and of each.

python benchmarks/trainer_gpu_shared.py --workload mnist-b128 --processes 1 2 4 8
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Print a line for each number of processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--workload", default="mnist-b128", help="Name of the workload. Default: mnist-b128.")
    add("--precision", default="bf16", help="bf16, fp16, tf32 or float32. Default: bf16.")
    add("--processes", type=int, nargs="+", default=[1, 2, 4, 8],
        help="Numbers of simultaneous trainings. Default: 1 2 4 8.")  # fmt: skip
    add("--seconds", type=float, default=4.0, help="Measure for this many seconds. Default: 4.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _train(options.workload, options.precision)
        return
    rows = []
    for count in options.processes:
        rate = _together(options.workload, options.precision, count, options.seconds)
        rows.append({"processes": count, "rows_a_second": rate})
        share = rate / rows[0]["rows_a_second"]
        print(
            f"{count} trainings: {rate / 1e6:6.2f} M rows/s in total, {share:.2f} times one; "
            f"each at {share / count:.0%} of the speed of one",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def _together(workload: str, precision: str, count: int, seconds: float) -> float:
    """Return the rows per second of ``count`` processes while all of them train."""
    argv = [sys.executable, __file__, "--child", "--workload", workload, "--precision", precision]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    children = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) for _ in range(count)
    ]
    for child in children:
        if child.stdout is not None:
            child.stdout.readline()  # waits for the first epoch
    began = time.time()
    time.sleep(seconds)
    ended = time.time()
    trained = 0.0
    for child in children:
        child.terminate()
        lines = [line.split() for line in child.communicate()[0].splitlines() if line.count(" ")]
        trained += sum(float(rows) for at, rows in lines if began < float(at) <= ended)
    return trained / (ended - began)


def _train(workload_name: str, precision: str) -> None:
    """Train until terminated; print the time and the rows of every epoch."""
    import pycuda_nn as nn
    from pycuda_nn.bench.train import config_for
    from pycuda_nn.bench.workloads import WORKLOADS, make_rows

    workload = WORKLOADS[workload_name]
    n = 1 << 16
    data = nn.Dataset.from_arrays(*make_rows(workload, n), task="classify")
    backend = nn.CudaBackend(nn.CudaOptions(precision=precision))
    show = lambda report: print(time.time(), n, flush=True)  # noqa: E731
    nn.train(config_for(workload, 1_000_000), data, on_epoch=show, backend=backend)


if __name__ == "__main__":
    main()
