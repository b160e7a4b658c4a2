"""Worker: time training steps of torch DistributedDataParallel, one process for each GPU.

Start it with torchrun; ``processes.py`` describes its lines. It trains with momentum SGD (fused) on
rows that are on the GPU, under autocast; eager, and as one CUDA graph of the whole step with the
all-reduce in it. The plan can name the sizes of the gradient buckets, and gradients in bfloat16.
This file imports nothing of ``pycuda_nn``.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Step = Callable[[], object]

_WARM_STEPS = 15  # DDP rebuilds its buckets first, and needs 11 steps before a capture
_ROUNDS = 5
_LEAST_STEPS = 8
_DISTINCT = 8  # minibatches of resident rows


def main(text: str) -> None:
    """Time the cases of the plan ``text``; rank 0 prints."""
    plan = json.loads(text)
    _end_with_parent()
    torch: Any = importlib.import_module("torch")
    world = _World(torch, cpu=plan.get("cpu", False))
    world.emit(world.versions())
    for number in plan["todo"]:
        world.emit({"begin": number})
        case = plan["cases"][number]
        for variant in plan["variants"]:
            timing = _time_variant(world, case, variant, plan)
            world.emit({"case": number, "variant": name_of(variant), **timing})
        world.emit({"done": number})
    world.end()


def name_of(variant: Mapping[str, Any]) -> str:
    """Return the variant as text."""
    words = ["graph" if variant["graph"] else "eager"]
    if variant["hook"]:
        words.append("bf16 gradients")
    if variant["cap"] is not None:
        words.append(f"{variant['cap']} MiB buckets")
    return ", ".join(words)


class _World:
    """The processes, and the device of this one."""

    def __init__(self, torch: Any, *, cpu: bool) -> None:
        self.torch, self.cpu = torch, cpu
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self._dist: Any = importlib.import_module("torch.distributed")
        if cpu:
            self.device: Any = torch.device("cpu")
            self._dist.init_process_group("gloo")
            return
        if not torch.cuda.is_available():
            raise RuntimeError("this torch finds no GPU")
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        self._dist.init_process_group("nccl", device_id=self.device)

    def versions(self) -> dict[str, Any]:
        nccl = None if self.cpu else ".".join(map(str, self.torch.cuda.nccl.version()))
        return {"torch": self.torch.__version__, "torch_nccl": nccl}

    def wait(self) -> None:
        """Wait for the device."""
        if not self.cpu:
            self.torch.cuda.synchronize()

    def gathered(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        values = [None] * self.size
        self._dist.all_gather_object(values, value)
        return values

    def emit(self, line: Mapping[str, Any]) -> None:
        if self.rank == 0:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def end(self) -> None:
        """End without the destructors: NCCL can wait forever for a graph that still has calls."""
        self.gathered(None)
        sys.stdout.flush()
        os._exit(0)


def _time_variant(
    world: _World, case: Mapping[str, Any], variant: Mapping[str, Any], plan: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the microseconds of a step, or the error."""
    try:
        step, stream = _step_of(world, case, variant, plan["precision"])
        with stream:
            return _timed(world, step, plan["seconds"])
    except Exception as error:  # noqa: BLE001 - the other variants continue
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}


def _step_of(
    world: _World, case: Mapping[str, Any], variant: Mapping[str, Any], precision: str
) -> tuple[Step, contextlib.AbstractContextManager[Any]]:
    """Return a warm step, and the context in which it must run."""
    torch = world.torch
    torch.manual_seed(0)
    x, y, chosen = _rows(world, case)
    if world.cpu:
        stream: Any = contextlib.nullcontext()
    else:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        stream = torch.cuda.stream(side)
    with stream:
        net = _network(world, case["sizes"], variant)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True)
        loss_of = _loss(world, net, precision, cached=not variant["graph"])

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss_of(x[chosen], y[chosen]).backward()
            optimizer.step()

        for _ in range(_WARM_STEPS):
            step()
        world.wait()
        if not variant["graph"]:
            return step, stream
        optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            step()
    return graph.replay, stream


def _rows(world: _World, case: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return rows and classes on the device, and the indices of one random minibatch."""
    torch, batch = world.torch, case["batch"] // world.size
    n, sizes = _DISTINCT * batch, case["sizes"]
    x = torch.randn(n, sizes[0], device=world.device)
    y = torch.randint(0, sizes[-1], (n,), device=world.device)
    return x, y, torch.randperm(n, device=world.device)[:batch].contiguous()


def _network(world: _World, sizes: Sequence[int], variant: Mapping[str, Any]) -> Any:
    nn = world.torch.nn
    layers: list[Any] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    net = nn.Sequential(*layers[:-1]).to(world.device)
    if world.size == 1:
        return net
    parallel = nn.parallel.DistributedDataParallel(
        net,
        device_ids=None if world.cpu else [world.device.index],
        gradient_as_bucket_view=True,
        static_graph=not variant["graph"],
        bucket_cap_mb=variant["cap"],
    )
    if variant["hook"]:
        hooks = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
        parallel.register_comm_hook(None, hooks.bf16_compress_hook)
    return parallel


def _loss(world: _World, net: Any, precision: str, *, cached: bool) -> Callable[[Any, Any], Any]:
    torch = world.torch
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"

    def loss(x: Any, y: Any) -> Any:
        with torch.autocast(
            world.device.type, dtype=kind, enabled=kind is not None, cache_enabled=cached
        ):
            return torch.nn.functional.cross_entropy(net(x), y)

    return loss


def _timed(world: _World, step: Step, seconds: float) -> dict[str, float]:
    """Return the median, fastest and slowest round; the slowest rank of a round counts."""
    each_s = max(world.gathered(_span(world, step, _LEAST_STEPS)))
    steps = max(_LEAST_STEPS, int(seconds / _ROUNDS / each_s))
    rounds = [max(world.gathered(_span(world, step, steps))) for _ in range(_ROUNDS)]
    us = [each * 1e6 for each in rounds]
    return {"us": statistics.median(us), "fastest": min(us), "slowest": max(us)}


def _span(world: _World, step: Step, steps: int) -> float:
    """Return the seconds of a step; all ranks start together."""
    world.gathered(None)
    world.wait()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    world.wait()
    return (time.perf_counter() - began) / steps


def _end_with_parent() -> None:
    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
