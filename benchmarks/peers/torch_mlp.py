"""Time a training step of PyTorch on one GPU: eager, and as a CUDA graph with the fused optimizer.

``benchmarks/trainer_gpu.py`` runs this script, which prints one JSON object;
``formulas_gpu.py`` runs it with an activation and a loss.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from pycuda_nn.bench.workloads import WORKLOADS, initial_weights, make_rows

BLOCK_S, BLOCKS = 0.2, 5


def main(
    name: str, precision: str, variants: list[str], activation: str = "ReLU", focal: str = ""
) -> None:
    """Print the microseconds per step of each variant."""
    workload = WORKLOADS[name]
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    rows, labels = make_rows(workload, workload.rows)
    x, y = torch.tensor(rows, device="cuda"), torch.tensor(labels, device="cuda").long()
    order = torch.randperm(workload.rows, device="cuda")
    answer: dict[str, object] = {"version": torch.__version__}
    for variant in variants:
        step = _step(workload, precision, x, y, order, variant, activation, focal)
        answer[variant] = _time(step)
    print(json.dumps(answer))


def _step(workload, precision, x, y, order, variant, activation, focal) -> Callable[[], object]:
    layers: list[nn.Module] = []
    for weight, bias in initial_weights(workload):
        linear = nn.Linear(weight.shape[1], weight.shape[0], device="cuda")
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weight))
            linear.bias.copy_(torch.tensor(bias))
        layers += [linear, getattr(nn, activation)()]
    net = nn.Sequential(*layers[:-1])
    fused = variant != "eager"
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, fused=fused)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    batch, state = workload.batch, torch.zeros((), dtype=torch.long, device="cuda")
    n_steps = workload.rows // batch
    places = torch.arange(batch, device="cuda")

    def forward(rows: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=kind, enabled=kind is not None, cache_enabled=not fused):
            return net(rows)

    if variant == "compiled graph":
        forward = torch.compile(forward)

    def step() -> None:
        rows = order[state * batch + places]
        optimizer.zero_grad(set_to_none=True)
        if focal:
            entropy = functional.cross_entropy(forward(x[rows]).float(), y[rows], reduction="none")
            loss = ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()
        else:
            loss = functional.cross_entropy(forward(x[rows]).float(), y[rows])
        loss.backward()
        optimizer.step()
        state.add_(1).remainder_(n_steps)

    if variant == "eager":
        return step
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
    main(sys.argv[1], sys.argv[2], sys.argv[3].split(","), *sys.argv[4:])
