"""Time a step with an activation and a loss that are formulas, next to built-in ones and the peers.

    python benchmarks/formulas_gpu.py --workload mnist-b128 --precision bf16

pycuda_nn runs whole epochs of ``nn.train``; JAX and PyTorch (a CUDA graph, compiled and not) run
steps only. The programs run one after the other, in separate processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOCAL = "-y * (1 - p)**2 * logp"
# Activation and loss of pycuda_nn, activation of JAX and of PyTorch.
CASES = (
    ("relu", "softmax", "relu", "ReLU"),
    ("sigmoid", "softmax", "sigmoid", "Sigmoid"),
    ("max(x, 0)", "softmax", "relu", "ReLU"),
    ("silu", "softmax", "silu", "SiLU"),
    ("gelu", FOCAL, "gelu", "GELU"),
)


def main() -> None:
    """Measure each case, or with --ours print the microseconds of one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--workload", action="append", metavar="NAME", help="Default: mnist-b128. Repeatable.")
    add("--precision", action="append", metavar="NAME", help="Default: bf16. Repeatable.")
    add("--ours", nargs=2, metavar=("ACTIVATION", "LOSS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    workloads, precisions = options.workload or ["mnist-b128"], options.precision or ["bf16"]
    if options.ours:
        print(json.dumps({"us": _ours(workloads[0], precisions[0], *options.ours)}))
        return
    print(f"{'us per step':<34}{'pycuda_nn':>10}{'JAX':>8}{'graph':>8}{'compiled graph':>16}")
    for workload in workloads:
        for precision in precisions:
            print(f"{workload}, {precision}")
            for activation, loss, of_jax, of_torch in CASES:
                focal = ["focal"] if loss == FOCAL else []
                how = ["--workload", workload, "--precision", precision]
                ours = _run([__file__, *how, "--ours", activation, loss])
                jax = _run([str(HERE / "peers/jax_mlp.py"), workload, precision, of_jax, *focal])
                words = [workload, precision, "graph,compiled graph", of_torch, *focal]
                torch = _run([str(HERE / "peers/torch_mlp.py"), *words])
                cells = [ours.get("us"), jax.get("scan")]
                cells += [torch.get("graph"), torch.get("compiled graph")]
                text = [f"{'-' if v is None else f'{v:.1f}'}" for v in cells]
                name = f"  {activation}{', focal' if focal else ''}"
                print(f"{name:<34}{text[0]:>10}{text[1]:>8}{text[2]:>8}{text[3]:>16}", flush=True)


def _ours(name: str, precision: str, activation: str, loss: str) -> float:
    """Return the microseconds per step, the median of epochs."""
    from dataclasses import replace

    import pycuda_nn as nn
    from pycuda_nn.bench.train import config_for
    from pycuda_nn.bench.workloads import WORKLOADS, make_rows

    workload = WORKLOADS[name]
    rows = nn.Dataset.from_arrays(*make_rows(workload, workload.rows), task="classify")
    config = replace(config_for(workload, 8), activation=activation, loss=loss)
    backend = nn.CudaBackend(nn.CudaOptions(precision=precision))
    history = nn.train(config, rows, backend=backend).history
    return statistics.median(each.seconds for each in history[1:]) / workload.steps * 1e6


def _run(argv: list[str]) -> dict[str, float]:
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, *argv], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr[-1500:], file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
