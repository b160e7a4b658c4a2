"""Measure several simultaneous trainings on one GPU: with shares, and in turns without them.

``sudo python -m benchmarks.gpu_shares`` trains with 1, 4, 8 and 16 processes. Without MPS, the
processes take turns. With shares, each of N processes has 1/N of the GPU, as a job with
``-l gpu_share=1/N``: it has the variables that such a job gets, and the same daemon. Only root can
start the daemon.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sge_jobs.node.gpus import detect
from sge_jobs.node.mps import Mps, client_variables

ROOT = Path(__file__).resolve().parents[1]
ROWS = 1 << 16


def main() -> None:
    """Print a row for each network and number of processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--sizes", action="append", metavar="A,B,C",
        help="Sizes of the layers. Default: 64,128,10 and 784,512,512,10. Repeatable.")  # fmt: skip
    add("--batch", type=int, default=128, help="Rows of a minibatch. Default: 128.")
    add("--precision", default="bf16", help="bf16, fp16, tf32 or float32. Default: bf16.")
    add("--processes", type=int, nargs="+", default=[1, 4, 8, 16],
        help="Numbers of simultaneous trainings. Default: 1 4 8 16.")  # fmt: skip
    add("--seconds", type=float, default=5.0, help="Measure for this many seconds. Default: 5.")
    add("--json", type=Path, metavar="FILE", help="Write the figures as JSON.")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _train(options.sizes[0], options.batch, options.precision)
        return
    rows = []
    print("million rows/s in total")
    print(f"{'sizes':<18}{'processes':>10}{'in turns':>10}{'shares':>10}{'gain':>7}")
    for sizes in options.sizes or ["64,128,10", "784,512,512,10"]:
        options.sizes = sizes
        for count in options.processes:
            row = _compare(options, count)
            rows.append(row)
            turns, shares = row["in_turns"] / 1e6, row["shares"] / 1e6
            print(f"{sizes:<18}{count:>10}{turns:>10.2f}{shares:>10.2f}{shares / turns:>6.1f}x",
                  flush=True)  # fmt: skip
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1) + "\n")


def _compare(options: argparse.Namespace, count: int) -> dict:
    """Return the rows per second of ``count`` processes without MPS, and with shares."""
    gpu = detect.detect().gpus[0]
    in_turns = _together(options, count, {})
    if count == 1:
        shares = in_turns  # a job with a whole GPU has no daemon
    else:
        mps = Mps("/run/gpu_shares")
        pipes = mps.start(gpu.uuid, os.getuid(), os.getgid())
        try:
            shares = _together(options, count, client_variables(pipes, 1000 // count))
        finally:
            mps.end(gpu.uuid, os.getuid())
    return {
        "gpu": gpu.name, "sizes": options.sizes, "batch": options.batch,
        "precision": options.precision, "processes": count, "in_turns": in_turns, "shares": shares,
    }  # fmt: skip


def _together(options: argparse.Namespace, count: int, variables: Mapping[str, str]) -> float:
    """Return the rows per second of ``count`` processes while all of them train."""
    argv = [sys.executable, __file__, "--child", "--sizes", options.sizes]
    argv += ["--batch", str(options.batch), "--precision", options.precision]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, **variables}
    children = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) for _ in range(count)
    ]
    for child in children:
        if child.stdout is None or not child.stdout.readline():  # waits for the first epoch
            raise SystemExit(f"a training of {options.sizes} ended with {child.wait()}")
    began = time.time()
    time.sleep(options.seconds)
    ended = time.time()
    for child in children:
        child.terminate()
    trained = 0.0
    for child in children:
        lines = [line for line in child.communicate()[0].splitlines() if line]
        trained += sum(ROWS for line in lines if began < float(line) <= ended)
    return trained / (ended - began)


def _train(sizes: str, batch: int, precision: str) -> None:
    """Train until terminated; print the time of every epoch."""
    import pycuda_nn as nn
    from pycuda_nn.bench.train import config_for
    from pycuda_nn.bench.workloads import Workload, make_rows

    widths = tuple(map(int, sizes.split(",")))
    workload = Workload(name="", sizes=widths, batch=batch, rows=ROWS)
    data = nn.Dataset.from_arrays(*make_rows(workload, ROWS), task="classify")
    backend = nn.CudaBackend(nn.CudaOptions(precision=precision))
    show = lambda report: print(time.time(), flush=True)  # noqa: E731
    nn.train(config_for(workload, 1_000_000), data, on_epoch=show, backend=backend)


if __name__ == "__main__":
    main()
