"""Time a training step of PyTorch on one GPU, as a CUDA graph with the fused optimizer.

``benchmarks/trainer_gpu.py`` runs this script with variants and ``NAME:PRECISION`` words, and reads
one JSON object for each; ``formulas_gpu.py`` runs it with an activation and a loss.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from pycuda_nn.bench.networks import find
from pycuda_nn.bench.workloads import Workload, initial_weights, make_rows

BLOCK_S, BLOCKS = 0.2, int(os.environ.get("BENCH_BLOCKS", "5"))


def measure(
    name: str, precision: str, variants: list[str], activation: str = "ReLU", focal: str = ""
) -> dict[str, object]:
    """Return the microseconds per step of each variant."""
    workload = find(name)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    rows, labels = make_rows(workload, workload.rows)
    x, y = torch.tensor(rows, device="cuda"), torch.tensor(labels, device="cuda")
    if workload.loss == "softmax":
        y = y.long()
    order = torch.randperm(workload.rows, device="cuda")
    answer: dict[str, object] = {"version": torch.__version__}
    for variant in variants:
        step = _step(workload, precision, x, y, order, variant, activation, focal)
        answer[variant] = _time(step)
    return answer


def _net(workload: Workload, activation: str) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in initial_weights(workload):
        linear = nn.Linear(weight.shape[1], weight.shape[0], device="cuda")
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weight))
            linear.bias.copy_(torch.tensor(bias))
        between = [nn.Dropout(workload.dropout)] if workload.dropout else []
        layers += [linear, getattr(nn, activation)(), *between]
    return nn.Sequential(*layers[: -2 if workload.dropout else -1])


def _loss(workload: Workload, focal: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    if workload.loss == "squared":
        return lambda z, y: 0.5 * (z - y).square().sum(dim=1).mean()
    if workload.loss == "logistic":
        return lambda z, y: functional.binary_cross_entropy_with_logits(z[:, 0], y.float())
    if not focal:
        return functional.cross_entropy

    def focal_loss(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        entropy = functional.cross_entropy(z, y, reduction="none")
        return ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()

    return focal_loss


def _step(workload, precision, x, y, order, variant, activation, focal) -> Callable[[], object]:
    net, loss_of = _net(workload, activation), _loss(workload, focal)
    if workload.optimizer == "adam":
        optimizer = torch.optim.Adam(net.parameters(), lr=0.001, fused=True, capturable=True)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, fused=True)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    batch, state = workload.batch, torch.zeros((), dtype=torch.long, device="cuda")
    n_steps = workload.rows // batch
    places = torch.arange(batch, device="cuda")

    def forward(rows: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=kind, enabled=kind is not None, cache_enabled=False):
            return net(rows)

    if variant == "compiled graph":
        forward = torch.compile(forward)

    def step() -> None:
        rows = order[state * batch + places]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(forward(x[rows]).float(), y[rows])
        loss.backward()
        optimizer.step()
        state.add_(1).remainder_(n_steps)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _time(step: Callable[[], object]) -> float:
    """Return the microseconds per step, the median over blocks."""
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    count = max(20, int(BLOCK_S / ((time.perf_counter() - began) / 20)))
    blocks = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        blocks.append((time.perf_counter() - began) / count * 1e6)
    return statistics.median(blocks)


if __name__ == "__main__":
    if ":" in sys.argv[-1]:
        for word in sys.argv[2:]:
            name, precision = word.split(":")
            try:
                found = measure(name, precision, sys.argv[1].split(","))
            except Exception as error:  # noqa: BLE001 - the others are still measured
                found = {"error": repr(error)[:300]}
            print(json.dumps({"workload": name, "precision": precision, **found}), flush=True)
    else:
        variants = sys.argv[3].split(",")
        print(json.dumps(measure(sys.argv[1], sys.argv[2], variants, *sys.argv[4:])))
