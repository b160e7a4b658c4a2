"""Compare spearmint's choosers with Optuna's samplers, BoTorch and SMAC3.

Suites: functions with known minima; ten real tasks in mixed spaces (scikit-learn, PyTorch where it
is installed), and twelve others for judging a change that was tried on the ten; the 24 functions of
BBOB in 3 and 5 dimensions (needs the package ioh).

    python benchmarks/search.py --results DIR [--suite tasks] [--methods M ...] [--seeds 10]
    python benchmarks/search.py --results DIR --timing
    python benchmarks/search.py --results DIR --table --rst FILE --json FILE

Each search runs in a separate process with one thread and writes a record to the folder of results.
A search with a record is not rerun, so the benchmark can be stopped and resumed at any time. A
record of spearmint's choosers is valid only for the source code that wrote it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from search_methods import METHODS, version_of
from search_suites import PROBLEMS, SUITES
from search_tables import TIMINGS, pairs, print_ranks, print_table, ranks, rst, summary, timings

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Record = dict[str, Any]
Job = tuple[str, ...]


def file_of(folder: Path, job: Job) -> Path:
    """Return the path of the record of ``job``."""
    kind, *rest = job
    return folder / ".".join([kind, *rest, "json"])


def read(path: Path) -> Record | None:
    """Return the record in ``path``; None if it is missing or outdated."""
    try:
        record: Record = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    current = version_of(record["method"])
    if current is not None and record["version"] != current:
        return None
    if record["kind"] == "search" and record["trials"] != PROBLEMS[record["problem"]].trials:
        return None
    return record


def run(folder: Path, job: Job) -> bool:
    """Run ``job`` unless it has a record; return whether it has a record now."""
    if read(file_of(folder, job)) is not None:
        return True
    script = Path(__file__).with_name("search_run.py")
    kind, *rest = job
    command = [sys.executable, str(script), kind, str(folder), *rest]
    environment = os.environ | ONE_THREAD
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    record = read(file_of(folder, job)) if done.returncode == 0 else None
    if record is None:
        reason = done.stderr.strip() or f"exit code {done.returncode}"
        print(f"{' '.join(job)}: failed:\n{reason}", file=sys.stderr, flush=True)
        return False
    if kind == "search":
        final, seconds = record["regret"][-1], sum(record["seconds"])
        print(f"{' '.join(job)}: regret {final:.3g}, {seconds:.1f} s of suggestions", flush=True)
    else:
        print(f"{' '.join(job)}: {record['cpu_seconds']:.3g} s", flush=True)
    return True


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    methods = ", ".join(METHODS)
    add(
        "--results",
        type=Path,
        required=True,
        metavar="DIR",
        help="Folder of the records. Required.",
    )
    add(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"Run only these methods: {methods}. Default: all.",
    )  # fmt: skip
    add("--suite", choices=SUITES, default="functions", help="Default: functions.")
    add(
        "--problems", nargs="+", choices=PROBLEMS, metavar="PROBLEM",
        help="Run only these problems, such as branin, svm or f22-5d. Default: all of the suite.",
    )  # fmt: skip
    add("--seeds", type=int, default=10, help="Searches of each method and problem. Default: 10.")
    add("--first-seed", type=int, default=0, help="The first of the seeds. Default: 0.")
    add("--jobs", type=int, default=1, help="Processes at the same time. Default: 1.")
    add("--timing", action="store_true", help="Time suggestions, in one process; run no searches.")
    add("--table", action="store_true", help="Only print the tables of the records; run nothing.")
    add("--rst", type=Path, metavar="FILE", help="Write the tables as reStructuredText.")
    add("--json", type=Path, metavar="FILE", help="Write the figures, versions and machines.")
    chosen = parser.parse_args()
    chosen.problems = chosen.problems or list(SUITES[chosen.suite])
    return chosen


def main() -> int:
    """Run searches without a record, then print the tables; return 1 if a run failed."""
    chosen = options()
    folder = chosen.results
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[Job] = []
    for method in chosen.methods:
        if chosen.timing:
            jobs += [("timing", method, str(n), str(pending)) for n, pending in TIMINGS]
        else:
            seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
            jobs += [("search", method, p, str(s)) for p in chosen.problems for s in seeds]
    done = [True]
    if not chosen.table:
        with ThreadPoolExecutor(1 if chosen.timing else chosen.jobs) as pool:
            done = list(pool.map(lambda job: run(folder, job), jobs))
    files = sorted(folder.glob("*.json"))
    records = [record for path in files if (record := read(path)) is not None]
    if len(records) < len(files):
        print(f"ignored {len(files) - len(records)} outdated records", file=sys.stderr)
    rows, times = summary(records), timings(records)
    print_table(rows, times)
    print_ranks(records)
    if chosen.rst:
        chosen.rst.write_text(rst(rows, times, records))
    if chosen.json:
        machines = {json.dumps(record["about"], sort_keys=True) for record in records}
        figures = {
            "about": [json.loads(m) for m in sorted(machines)],
            "rows": rows,
            "ranks": ranks(records),
            "pairs": pairs(records),
            "timing": times,
        }
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
