"""The figures of a scaling benchmark: times, speed-ups and efficiencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pycuda_nn.bench.scaling.cases import Case, Work

OWN, NCCL, TORCH = "pycuda_nn", "pycuda_nn with NCCL", "torch DDP"
ENGINES = (OWN, NCCL, TORCH)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one engine needed for a step of ``work``, or why it has no time.

    Attributes:
        variant: How torch trained; "" for pycuda_nn.
        us, fastest, slowest: Microseconds of a step: median, fastest and slowest epoch or round.
    """

    engine: str
    work: Work
    variant: str = ""
    us: float | None = None
    fastest: float | None = None
    slowest: float | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ScalingRow:
    """The best result of one engine for a row of the table.

    Attributes:
        batch, batch_a_gpu: Minibatch of the training and of a GPU.
        us_a_step, fastest, slowest, variant, error: As in :class:`Result`.
        speed_up: Rows per second, divided by those of the same engine on one GPU.
        efficiency: The speed-up divided by the number of GPUs.
    """

    scaling: str
    network: str
    gpus: int
    batch: int
    batch_a_gpu: int
    engine: str
    variant: str
    us_a_step: float | None
    fastest: float | None
    slowest: float | None
    speed_up: float | None
    efficiency: float | None
    error: str


@dataclass(frozen=True, kw_only=True)
class ScalingReport:
    """All rows, all measured results, and the machine.

    Attributes:
        machine: Facts and versions, as the workers print them.
        precision: Of all engines.
        notes: Engines without results, and why.
    """

    gpus: int
    precision: str
    machine: Mapping[str, Any]
    rows: tuple[ScalingRow, ...]
    results: tuple[Result, ...] = field(default=())
    notes: tuple[str, ...] = ()


def rows_of(cases: Sequence[Case], results: Sequence[Result]) -> tuple[ScalingRow, ...]:
    """Return a row for each case and each engine that tried it.

    On one GPU nothing is exchanged: pycuda_nn with NCCL is compared with pycuda_nn there.
    """
    rows = []
    for case in cases:
        for engine in ENGINES:
            result = best(results, engine, case.work)
            if result is not None:
                rows.append(_row(case, result, best(results, _base_of(engine), case.base)))
    return tuple(rows)


def best(results: Sequence[Result], engine: str, work: Work) -> Result | None:
    """Return the fastest result of ``engine``, else one with an error, else None."""
    found = [result for result in results if result.engine == engine and result.work == work]
    timed = [result for result in found if result.us is not None]
    if timed:
        return min(timed, key=lambda result: result.us or 0.0)
    return found[0] if found else None


def _base_of(engine: str) -> str:
    return OWN if engine == NCCL else engine


def _row(case: Case, result: Result, base: Result | None) -> ScalingRow:
    work = case.work
    speed_up = None
    if result.us is not None and base is not None and base.us is not None:
        speed_up = (work.batch / result.us) / (case.base.batch / base.us)
    return ScalingRow(
        scaling=case.scaling,
        network=work.network,
        gpus=work.gpus,
        batch=work.batch,
        batch_a_gpu=work.batch // work.gpus,
        engine=result.engine,
        variant=result.variant,
        us_a_step=result.us,
        fastest=result.fastest,
        slowest=result.slowest,
        speed_up=speed_up,
        efficiency=None if speed_up is None else speed_up / work.gpus,
        error=result.error,
    )
