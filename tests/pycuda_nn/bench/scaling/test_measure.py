from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pycuda_nn.bench.scaling import Settings, measure, scaling_table
from pycuda_nn.bench.scaling.processes import Command, Line
from pycuda_nn.bench.scaling.report import ENGINES, NCCL, OWN, TORCH

MACHINE = {
    "gpu": "A GPU", "arch": "sm_90", "driver": "580.1", "compiler": "NVRTC 13.0",
    "pycuda": "2026.1", "check_pci": "unknown",
}  # fmt: skip


class Machine:
    """Workers of a machine where a step takes ``us(engine, gpus, batch)``."""

    def __init__(self, us: dict[tuple[str, int, int], float | str]) -> None:
        self.us = us
        self.commands: list[list[str]] = []

    def run(self, command: Command, n: int, limit_s: float) -> Iterator[Line]:
        if not n:
            return
        words = command(range(n))
        self.commands.append(words)
        plan = json.loads(words[-1])
        torch = "torch.distributed.run" in words
        yield {"torch": "2.13", "torch_nccl": "2.28"} if torch else {
            "machine": MACHINE, "peer_access": True, "nccl": "2.28"
        }  # fmt: skip
        for number in plan["todo"]:
            case = plan["cases"][number]
            engine = TORCH if torch else NCCL if case["exchange"] == "nccl" else OWN
            found = self.us[engine, case["gpus"], case["batch"]]
            for place, variant in enumerate(plan.get("variants", [None])):
                line: Line = {"case": number}
                if variant is not None:
                    line["variant"] = "graph" if variant["graph"] else f"eager {place}"
                if isinstance(found, str):
                    yield {**line, "error": found}
                else:
                    us = found * (1.0 if variant is None or variant["graph"] else 3.0)
                    yield {**line, "us": us, "fastest": us, "slowest": us}


FIGURES: dict[tuple[str, int, int], float | str] = {
    (OWN, 1, 1024): 120.0, (OWN, 2, 2048): 125.0, (OWN, 1, 8192): 560.0, (OWN, 2, 8192): 320.0,
    (NCCL, 2, 2048): 200.0, (NCCL, 2, 8192): 310.0,
    (TORCH, 1, 1024): 280.0, (TORCH, 2, 2048): 400.0, (TORCH, 1, 8192): 750.0,
    (TORCH, 2, 8192): "RuntimeError: no",
}  # fmt: skip


def settings(**changes: object) -> Settings:
    values = {"networks": ("netflix-b1024",), "counts": (1, 2), "engines": ENGINES,
              "precision": "bf16", "quick": True, **changes}  # fmt: skip
    return Settings(**values)  # type: ignore[arg-type]


@pytest.fixture
def torch_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


@pytest.mark.usefixtures("torch_there")
def test_speed_ups_against_one_gpu_of_the_same_engine() -> None:
    report = measure(settings(), lambda line: None, Machine(FIGURES).run)
    found = {
        (row.scaling, row.engine, row.gpus): (row.us_a_step, row.speed_up, row.efficiency)
        for row in report.rows
    }
    assert found["weak", OWN, 1] == (120.0, 1.0, 1.0)
    assert found["weak", OWN, 2] == pytest.approx((125.0, 1.92, 0.96))
    assert found["weak", NCCL, 2] == pytest.approx((200.0, 1.2, 0.6))
    assert found["weak", TORCH, 2] == pytest.approx((400.0, 1.4, 0.7))
    assert found["strong", OWN, 2] == pytest.approx((320.0, 1.75, 0.875))
    assert found["strong", NCCL, 2][1] == pytest.approx(560 / 310)
    assert found["strong", TORCH, 2] == (None, None, None)
    assert ("weak", NCCL, 1) not in found


@pytest.mark.usefixtures("torch_there")
def test_the_fastest_way_of_torch_counts_and_all_are_in_the_report() -> None:
    report = measure(settings(), lambda line: None, Machine(FIGURES).run)
    (row,) = (row for row in report.rows
              if (row.engine, row.scaling, row.gpus) == (TORCH, "weak", 2))  # fmt: skip
    assert row.variant == "graph"
    works = [result.work for result in report.results if result.engine == TORCH]
    assert [(work.gpus, work.batch) for work in works].count((2, 2048)) == 5


@pytest.mark.usefixtures("torch_there")
def test_the_table_shows_what_is_slower_and_what_failed() -> None:
    text = scaling_table(measure(settings(), lambda line: None, Machine(FIGURES).run))
    lines = text.splitlines()
    assert lines[0] == "2 x A GPU (sm_90), driver 580.1, NVRTC 13.0, PyCUDA 2026.1"
    assert "torch 2.13 with NCCL 2.28" in lines[1]
    assert "NCCL_NVLS_ENABLE=0" in lines[2]
    rows = [" ".join(line.split()) for line in lines if line.startswith("512-")]
    net = "512-2048-2048-512-10"
    assert rows == [
        f"{net} 1,024 1 120.0 100.0% - 280.0 100.0% 2.33 graph",
        f"{net} 1,024 2 125.0 96.0% 200.0 60.0% 1.60 400.0 70.0% 3.20 graph",
        f"{net} 8,192 1 560.0 1.00x - 750.0 1.00x 1.34 graph",
        f"{net} 4,096 2 320.0 1.75x 310.0 1.81x 0.97 failed",
    ]
    lost = lines.index("pycuda_nn is slower in 1 of 5 comparisons")
    assert "pycuda_nn with NCCL takes 0.97 of its time: strong" in lines[lost + 1]
    assert "RuntimeError: no" in lines[-1]


def test_without_torch_the_rest_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    machine = Machine(FIGURES)
    report = measure(settings(), lambda line: None, machine.run)
    assert {row.engine for row in report.rows} == {OWN, NCCL}
    assert len(machine.commands) == 2
    assert "torch is not installed" in scaling_table(report)


def test_nccl_alone_is_compared_with_one_gpu() -> None:
    report = measure(settings(engines=(NCCL,)), lambda line: None, Machine(FIGURES).run)
    (row,) = (row for row in report.rows if (row.engine, row.scaling) == (NCCL, "weak"))
    assert row.efficiency == pytest.approx(0.6)


@pytest.mark.usefixtures("torch_there")
def test_torch_starts_with_a_process_for_each_gpu() -> None:
    machine = Machine(FIGURES)
    measure(settings(engines=(TORCH,)), lambda line: None, machine.run)
    assert [next(word for word in words if "nproc" in word) for words in machine.commands] == [
        "--nproc-per-node=1", "--nproc-per-node=2",
    ]  # fmt: skip
    assert all("--standalone" in words for words in machine.commands)


@pytest.mark.usefixtures("torch_there")
@pytest.mark.parametrize(("precision", "quick", "ways"), [
    ("bf16", True, 5), ("bf16", False, 12), ("float32", False, 6),
])  # fmt: skip
def test_ways_of_torch(precision: str, quick: bool, ways: int) -> None:
    machine = Machine(FIGURES)
    chosen = settings(engines=(TORCH,), precision=precision, quick=quick)
    measure(chosen, lambda line: None, machine.run)
    variants = [json.loads(words[-1])["variants"] for words in machine.commands]
    assert [len(found) for found in variants] == [2, ways]
    hooks = {variant["hook"] for variant in variants[1]}
    assert (True in hooks) == (precision == "bf16")
