"""Time epochs of pycuda_nn on one GPU, as ``pycuda-nn bench train`` does.

``benchmarks/trainer_gpu.py`` runs this script with ``NAME:PRECISION`` words, and reads one JSON
object for each. The log, with the path of each training, goes to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict

import pycuda_nn as nn
from pycuda_nn.bench.machine import describe
from pycuda_nn.bench.networks import find
from pycuda_nn.bench.train import measure
from pycuda_nn.cuda.runtime.device import Device


def main(words: list[str]) -> None:
    """Print a JSON object for each word."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    device = Device()
    with device.active():
        machine = describe(device)
    wanted: dict[str, list[str]] = {}
    for word in words:
        name, precision = word.split(":")
        wanted.setdefault(name, []).append(precision)
    for name, precisions in wanted.items():
        options = [nn.CudaOptions(precision=precision) for precision in precisions]
        epochs = int(os.environ.get("BENCH_BLOCKS", "5"))
        report = measure(machine, [find(name)], options, epochs, logging.info)
        for row in report.rows:
            print(json.dumps({**asdict(row), "machine": asdict(machine)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
