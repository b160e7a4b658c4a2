"""Compare spearmint's choosers with Optuna's samplers and BoTorch on functions with known minima.

    python benchmarks/search.py --results DIR [--methods M ...] [--problems P ...] [--seeds 10]
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
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from search_methods import METHODS, version_of
from search_problems import PROBLEMS

TIMINGS = ((20, 0), (50, 0), (100, 0), (200, 0), (1000, 0), (200, 64))
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


def summary(records: Sequence[Record]) -> list[Record]:
    """Return median, quartiles and worst regret of each problem and method."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record["kind"] == "search":
            groups[record["problem"], record["method"]].append(record)
    rows = []
    for problem in PROBLEMS:
        for method in METHODS:
            if not (group := groups[problem, method]):
                continue
            regrets = [record["regret"][-1] for record in group]
            cuts = statistics.quantiles(regrets, n=4, method="inclusive") if group[1:] else None
            low, _, high = cuts or regrets * 3
            seconds = [s for record in group for s in record["cpu_seconds"]]
            rows.append(
                {
                    "problem": problem,
                    "trials": PROBLEMS[problem].trials,
                    "method": method,
                    "version": group[0]["version"],
                    "seeds": len(group),
                    "median": statistics.median(regrets),
                    "quartiles": [low, high],
                    "worst": max(regrets),
                    "cpu_seconds": statistics.median(seconds),
                    "regrets": regrets,
                }
            )
    return rows


def timings(records: Sequence[Record]) -> list[Record]:
    """Return the records of timings in order, without the fields that are equal in all."""
    rows = [record for record in records if record["kind"] == "timing"]
    rows.sort(key=lambda row: (list(METHODS).index(row["method"]), row["pending"], row["n"]))
    return [{key: row[key] for key in row.keys() - {"kind", "about"}} for row in rows]


def print_table(rows: Sequence[Record], times: Sequence[Record]) -> None:
    """Print both tables as text."""
    print(f"\n{'problem':20}{'method':19}{'trials':>6}{'seeds':>6}", end="")
    print(f"{'median':>10}{'quartiles':>20}{'worst':>10}{'CPU s':>8}")
    for row in rows:
        low, high = row["quartiles"]
        print(f"{row['problem']:20}{row['method']:19}{row['trials']:6}{row['seeds']:6}", end="")
        print(f"{row['median']:10.2g}{low:10.2g}{high:10.2g}", end="")
        print(f"{row['worst']:10.2g}{row['cpu_seconds']:8.3f}")
    if times:
        print(f"\n{'processor seconds':20}" + "".join(f"{_at(t):>12}" for t in TIMINGS))
    for method in METHODS:
        cells = _time_cells(times, method)
        if any(cells):
            print(f"{method:20}" + "".join(f"{cell or '-':>12}" for cell in cells))


def _at(timing: tuple[int, int]) -> str:
    n, pending = timing
    return f"{n}+{pending}" if pending else str(n)


def _time_cells(times: Sequence[Record], method: str) -> list[str]:
    """Return the seconds of ``method`` for each of TIMINGS; empty if not measured."""
    known = {(t["n"], t["pending"]): t["cpu_seconds"] for t in times if t["method"] == method}
    return [f"{known[t]:.2g}" if t in known else "" for t in TIMINGS]


def rst(rows: Sequence[Record], times: Sequence[Record]) -> str:
    """Return both tables as reStructuredText."""
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    cells = {(row["problem"], row["method"]): _cell(row) for row in rows}
    problems = [name for name in PROBLEMS if any(row["problem"] == name for row in rows)]
    table = [["Problem", "Trials", *methods]]
    for name in problems:
        regrets = [cells.get((name, method), "-") for method in methods]
        table.append([PROBLEMS[name].label, str(PROBLEMS[name].trials), *regrets])
    title = "True regret at the lowest value observed: median (quartiles), number of searches"
    parts = [_list_table(title, table)]
    if times:
        table = [["n", *(_at(t).replace("+", ", running ") for t in TIMINGS)]]
        for method in METHODS:
            if any(seconds := _time_cells(times, method)):
                table.append([method, *(cell or "-" for cell in seconds)])
        title = "Processor seconds of a suggestion at n observations in 6 dimensions, one thread"
        parts.append(_list_table(title, table))
    return ".. Written by benchmarks/search.py --rst; do not edit.\n\n" + "\n".join(parts)


def _cell(row: Record) -> str:
    low, high = row["quartiles"]
    return f"{row['median']:.2g} ({low:.2g}, {high:.2g}), {row['seeds']}"


def _list_table(title: str, table: Sequence[Sequence[str]]) -> str:
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for first, *others in table:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return "\n".join(lines) + "\n"


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    methods, problems = ", ".join(METHODS), ", ".join(PROBLEMS)
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
    add(
        "--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="PROBLEM",
        help=f"Run only these problems: {problems}. Default: all.",
    )  # fmt: skip
    add("--seeds", type=int, default=10, help="Searches of each method and problem. Default: 10.")
    add("--jobs", type=int, default=1, help="Processes at the same time. Default: 1.")
    add("--timing", action="store_true", help="Time suggestions, in one process; run no searches.")
    add("--table", action="store_true", help="Only print the tables of the records; run nothing.")
    add("--rst", type=Path, metavar="FILE", help="Write the tables as reStructuredText.")
    add("--json", type=Path, metavar="FILE", help="Write the figures, versions and machines.")
    return parser.parse_args()


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
            seeds = range(chosen.seeds)
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
    if chosen.rst:
        chosen.rst.write_text(rst(rows, times))
    if chosen.json:
        machines = {json.dumps(record["about"], sort_keys=True) for record in records}
        figures = {
            "about": [json.loads(m) for m in sorted(machines)],
            "rows": rows,
            "timing": times,
        }
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
