"""Time all engines on all numbers of GPUs."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pycuda_nn.bench.scaling.cases import Work, cases_of, works_of
from pycuda_nn.bench.scaling.processes import Command, Line, run_cases
from pycuda_nn.bench.scaling.report import NCCL, OWN, TORCH, Result, ScalingReport, rows_of
from pycuda_nn.bench.scaling.variants import variants_of

Run = Callable[[Command, int, float], Iterator[Line]]
Say = Callable[[str], None]

_EXCHANGES = {"peer": OWN, "nccl": NCCL}
_HERE = "pycuda_nn.bench.scaling"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to time, and for how long.

    Attributes:
        networks: Names of ``NETWORKS``.
        counts: Numbers of GPUs, with 1.
        engines: Of ``ENGINES``.
        quick: Fewer ways to train with torch, and shorter times.
    """

    networks: Sequence[str]
    counts: Sequence[int]
    engines: Sequence[str]
    precision: str
    quick: bool

    @property
    def seconds(self) -> float:
        """Timed seconds of each training."""
        return 0.15 if self.quick else 0.6

    @property
    def row_bytes(self) -> int:
        """Least size of the rows in GPU memory."""
        return 1 << 30 if self.quick else 1 << 31

    @property
    def limit_s(self) -> float:
        """Longest silence of a worker."""
        return 90.0 if self.quick else 150.0


def measure(settings: Settings, say: Say, run: Run = run_cases) -> ScalingReport:
    """Return the report; ``run`` starts the workers."""
    cases = cases_of(settings.networks, settings.counts)
    collected = _Collected(say)
    notes = []
    for gpus in settings.counts:
        works = works_of(cases, gpus)
        collected.add(own_lines(settings, works, run))
    if TORCH in settings.engines and importlib.util.find_spec("torch") is None:
        notes.append("torch is not installed: no comparison with torch DDP")
    elif TORCH in settings.engines:
        for gpus in settings.counts:
            collected.add(torch_lines(settings, works_of(cases, gpus), run))
    return ScalingReport(
        gpus=max(settings.counts),
        precision=settings.precision,
        machine=collected.machine,
        rows=rows_of(cases, collected.results),
        results=tuple(collected.results),
        notes=tuple(notes),
    )


def own_lines(
    settings: Settings, works: Sequence[Work], run: Run
) -> Iterator[tuple[str, Work | None, Line]]:
    """Yield engine, work and line for each line of the workers of pycuda_nn."""
    chosen = {name: engine for name, engine in _EXCHANGES.items() if engine in settings.engines}
    if works[0].gpus == 1:  # nothing is exchanged
        chosen = {"peer": OWN} if chosen else {}
    todo = [
        (engine, work, {**_plain(work), "exchange": exchange})
        for exchange, engine in chosen.items()
        for work in works
    ]
    plan = {
        "cases": [case for _, _, case in todo],
        "precision": settings.precision,
        "row_bytes": settings.row_bytes,
        "seconds": settings.seconds,
    }

    def command(numbers: Sequence[int]) -> list[str]:
        text = json.dumps({**plan, "todo": list(numbers)})
        return [sys.executable, "-m", f"{_HERE}.own", text]

    for line in run(command, len(todo), settings.limit_s):
        engine, work = todo[line["case"]][:2] if "case" in line else (OWN, None)
        yield engine, work, line


def torch_lines(
    settings: Settings, works: Sequence[Work], run: Run
) -> Iterator[tuple[str, Work | None, Line]]:
    """Yield engine, work and line for each line of the workers of torch."""
    gpus = works[0].gpus
    half = settings.precision in ("bf16", "fp16")
    plan = {
        "cases": [_plain(work) for work in works],
        "precision": settings.precision,
        "seconds": settings.seconds,
        "variants": variants_of(gpus, quick=settings.quick, half=half),
    }

    def command(numbers: Sequence[int]) -> list[str]:
        text = json.dumps({**plan, "todo": list(numbers)})
        start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
        return [sys.executable, *start, "-m", f"{_HERE}.torch_ddp", text]

    for line in run(command, len(works), settings.limit_s):
        yield TORCH, works[line["case"]] if "case" in line else None, line


def _plain(work: Work) -> dict[str, Any]:
    return {"sizes": work.sizes, "gpus": work.gpus, "batch": work.batch}


class _Collected:
    """The results so far."""

    def __init__(self, say: Say) -> None:
        self.results: list[Result] = []
        self.machine: dict[str, Any] = {}
        self._say = say

    def add(self, lines: Iterator[tuple[str, Work | None, Line]]) -> None:
        for engine, work, line in lines:
            if work is None:
                self.machine.update(line)
                continue
            values = {key: value for key, value in line.items() if key != "case"}
            result = Result(engine=engine, work=work, **values)
            self.results.append(result)
            self._say(_text(result))


def _text(result: Result) -> str:
    work = result.work
    gpus = "1 GPU" if work.gpus == 1 else f"{work.gpus} GPUs"
    what = f"{result.engine}: {work.network}, minibatch {work.batch:,}, {gpus}"
    if result.variant:
        what += f", {result.variant}"
    return f"{what}: {result.error}" if result.us is None else f"{what}: {result.us:.1f} us a step"
