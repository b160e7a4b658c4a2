"""Run searches with faults; print a table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import benchmarks.queue_faults
from benchmarks.queue_faults.beds import BEDS
from benchmarks.queue_faults.judge import Outcome
from benchmarks.queue_faults.run import TRIALS, FaultySearch
from benchmarks.queue_faults.table import table


def main() -> None:
    """Print a row for each driver; exit with 1 if a guarantee did not hold."""
    parser = argparse.ArgumentParser(
        description=benchmarks.queue_faults.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--drivers", default=",".join(BEDS), help="default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the instants of the kills")
    parser.add_argument("--seconds", type=float, default=30.0, help="duration of a trial")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file, too")
    parser.add_argument("--logs", type=Path, help="directory of the logs; default: a new one")
    given = parser.parse_args()
    names = given.drivers.split(",")
    if unknown := sorted(set(names) - set(BEDS)):
        parser.error(f"unknown drivers: {', '.join(unknown)}; expected: {', '.join(BEDS)}")
    logs = given.logs or Path(tempfile.mkdtemp(prefix="queue-faults-"))
    logs.mkdir(parents=True, exist_ok=True)
    outcomes = [one_search(name, given.seed, int(given.seconds * 2), logs) for name in names]
    print(table(outcomes))
    if given.json:
        rows = [asdict(outcome) for outcome in outcomes]
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(not all(outcome.is_good(TRIALS) for outcome in outcomes))


def one_search(name: str, seed: int, steps: int, logs: Path) -> Outcome:
    """Run the search of a driver on a new bed."""
    log = logs / f"{name}-{seed}.log"
    log.write_text("")
    print(f"{time.strftime('%H:%M:%S')} {name}: log {log}", file=sys.stderr, flush=True)
    with BEDS[name]() as bed:
        outcome = FaultySearch(bed, seed=seed, steps=steps, log=log).run()
    print(outcome, file=sys.stderr, flush=True)
    return outcome


if __name__ == "__main__":
    main()
