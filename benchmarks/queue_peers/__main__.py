"""Run every way several times; print the medians."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import benchmarks.queue_peers
from benchmarks.queue_faults.table import simple_table
from benchmarks.queue_peers.beds import BEDS
from benchmarks.queue_peers.ways import OURS, WAYS, Task, Way
from tests.testbed.cell import UID
from tests.testbed.queue_cluster import QueueCluster

SLOTS = 8
_LIMIT_S = 600
_HEADS = ("queue", "way", "trials/s", "s for all", "pause, s")

Span = tuple[float, float]


@dataclass(frozen=True)
class Figures:
    """What was measured for a way, one value for each repeat."""

    queue: str
    way: str
    values: dict[str, list[float]]


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(
        description=benchmarks.queue_peers.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peers", type=Path, help="Python that has the peers; else without them")
    parser.add_argument("--pauses", action="store_true", help="only the pauses at one slot")
    parser.add_argument("--queues", default=",".join(BEDS), help="default: all")
    parser.add_argument("--trials", type=int, default=64, help="of a run at 8 slots")
    parser.add_argument("--in-a-row", type=int, default=12, help="trials of a run at one slot")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a trial at one slot")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    given = parser.parse_args()
    found: list[Figures] = []
    for queue in given.queues.split(","):
        many = {} if given.pauses else measure(queue, given, SLOTS, given.trials, 0.0)
        row = measure(queue, given, 1, given.in_a_row, given.seconds)
        for way in ways_of(queue, given):
            values = {**many.get(way.name, {}), **row[way.name]}
            found.append(Figures(queue, way.name, values))
            print(found[-1], file=sys.stderr, flush=True)
    print(simple_table(_HEADS, [cells(figures) for figures in found]))
    if given.json:
        given.json.write_text(json.dumps([asdict(figures) for figures in found], indent=1) + "\n")


def ways_of(queue: str, given: argparse.Namespace) -> Sequence[Way]:
    """Return the ways to measure: ours, and with ``--peers`` those of others."""
    return WAYS[queue] if given.peers else OURS


def measure(
    queue: str, given: argparse.Namespace, slots: int, trials: int, seconds: float
) -> dict[str, dict[str, list[float]]]:
    """Return the figures of each way, one for each repeat."""
    figures: dict[str, dict[str, list[float]]] = {way.name: {} for way in ways_of(queue, given)}
    with BEDS[queue](slots) as cluster:
        for repeat in range(given.repeats):
            for number, way in enumerate(ways_of(queue, given)):
                folder = cluster.home / f"{repeat}-{number}"
                folder.mkdir()
                task = Task(
                    queue=queue,
                    folder=folder,
                    trials=trials,
                    seconds=seconds,
                    slots=slots,
                    peers=given.peers or Path(sys.executable),
                )
                total, spans = run(cluster, way, task)
                for name, value in summary(total, spans, slots).items():
                    figures[way.name].setdefault(name, []).append(value)
    return figures


def run(cluster: QueueCluster, way: Way, task: Task) -> tuple[float, list[Span]]:
    """Return the seconds until the last trial ended, and the spans of the trials."""
    task.records.touch()
    argv = way.argv(task)
    for path in (task.folder, *task.folder.iterdir()):
        os.chown(path, UID, UID)
    began = time.time()
    done = subprocess.run(
        cluster.enter(argv, uid=UID, env={"PWD": str(task.folder)}),
        check=False,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        cwd="/",
    )
    lines = [line.split() for line in task.records.read_text().splitlines()]
    spans = sorted((float(start), float(end)) for start, end in lines)
    if done.returncode or len(spans) < task.trials:
        raise SystemExit(f"{way.name}: {len(spans)} trials\n{done.stdout}{done.stderr}")
    return max(end for _, end in spans) - began, spans


def summary(total: float, spans: list[Span], slots: int) -> dict[str, float]:
    """Return the figures of a run at 8 slots, or at one slot."""
    if slots == 1:
        pauses = [after[0] - before[1] for before, after in pairwise(spans)]
        return {"pause_s": statistics.median(pauses)}
    lasted = max(end for _, end in spans) - spans[0][0]
    return {"trials_per_s": (len(spans) - 1) / lasted, "all_s": total}


def cells(figures: Figures) -> list[str]:
    """Return a row of the table: medians."""
    median = {name: statistics.median(values) for name, values in figures.values.items()}
    pause = f"{median['pause_s']:.2g}" if median["pause_s"] < 1 else f"{median['pause_s']:.1f}"
    rate = f"{median['trials_per_s']:.3g}" if "trials_per_s" in median else r"\-"
    numbers = [rate, f"{median['all_s']:.1f}" if "all_s" in median else r"\-", pause]
    return [figures.queue, figures.way, *numbers]


if __name__ == "__main__":
    main()
