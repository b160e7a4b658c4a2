"""Make seeded runs, and print what was said and what was wrong."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import benchmarks.launch_faults
from benchmarks.launch_faults.run import Run
from benchmarks.launch_faults.scenes import SCENES
from tests.testbed.hostless import HostlessCloud

# Imported before the commands fork.
_COMMANDS = ("start", "clusters", "resize", "listclusters")


def one_run(cloud: HostlessCloud, seed: int) -> Run:
    """Do the run of a seed."""
    run = Run(cloud, seed)
    SCENES[seed % len(SCENES)](run)
    run.finish()
    return run


def _work(seeds: Sequence[int]) -> Iterator[tuple[int, list[str], Counter[str], Counter[str]]]:
    with HostlessCloud() as cloud:
        for name in _COMMANDS:
            importlib.import_module(f"starcluster.commands.{name}")
        cloud.warm()
        for seed in seeds:
            run = one_run(cloud, seed)
            yield seed, run.wrong, run.said, run.done


def main() -> None:
    """Print what was said, and what was wrong; exit with 1 if something was."""
    parser = argparse.ArgumentParser(
        description=benchmarks.launch_faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--at-once", type=int, default=4, help="runs at once")
    given = parser.parse_args()
    began = time.monotonic()
    seeds = range(given.first, given.first + given.runs)
    paths, workers = [], []
    for number in range(min(given.at_once, given.runs)):
        path = Path(tempfile.mkstemp(suffix=".jsonl")[1])
        paths.append(path)
        if worker := os.fork():
            workers.append(worker)
            continue
        with path.open("w") as rows:
            for row in _work(seeds[number :: given.at_once]):
                print(json.dumps(row), file=rows, flush=True)
                for wrong in row[1]:  # at once, because a whole run takes minutes
                    _tell(row[0], wrong)
        os._exit(0)
    ended = [os.waitpid(worker, 0)[1] for worker in workers]
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for path in paths:
        path.unlink()
    bad = sum(bool(wrong) for _, wrong, _, _ in rows)
    print(f"{len(rows)} runs, {bad} wrong, {time.monotonic() - began:.0f} s")
    _print_counts(rows)
    if bad or any(ended) or len(rows) != given.runs:
        sys.exit(1)


def _print_counts(rows: Iterable[tuple[int, list[str], dict[str, int], dict[str, int]]]) -> None:
    """Print what was wrong, what commands said, and which faults they had."""
    wrong: Counter[str] = Counter(orphans=0, twice=0, messages=0)
    said: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for _, texts, kinds, commands in rows:
        for text in texts:
            orphan, twice = text.startswith("orphans"), text.startswith("two ")
            wrong["orphans" if orphan else "twice" if twice else "messages"] += 1
        said.update(kinds)
        done.update(commands)
    print(", ".join(f"{kind}: {count}" for kind, count in wrong.items()))
    for kind, count in said.most_common():
        print(f"  {count:4} {kind}")
    print("commands and faults:")
    for kind, count in sorted(done.items()):
        print(f"  {count:4} {kind}")


def _tell(seed: int, wrong: str) -> None:
    print(
        f"seed {seed} ({SCENES[seed % len(SCENES)].__name__}): {wrong}", file=sys.stderr, flush=True
    )


if __name__ == "__main__":
    main()
