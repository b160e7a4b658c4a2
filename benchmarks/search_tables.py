"""Tables of the search benchmark: regret, ranks, pairs of methods, and times."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from search_methods import METHODS
from search_suites import PROBLEMS

TIMINGS = ((20, 0), (50, 0), (100, 0), (200, 0), (1000, 0), (200, 64))
Record = dict[str, Any]


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
                    "group": PROBLEMS[problem].group,
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


def finals(records: Sequence[Record]) -> dict[tuple[str, int], dict[str, float]]:
    """Return the final regret of each method, by problem and seed."""
    found: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for record in records:
        if record["kind"] == "search":
            found[record["problem"], record["seed"]][record["method"]] = record["regret"][-1]
    return found


def cells(records: Sequence[Record]) -> dict[tuple[str, int], dict[str, float]]:
    """Return the final regret of each method, for each problem and seed that all of them have."""
    found = finals(records)
    methods = {method for values in found.values() for method in values}
    return {cell: values for cell, values in found.items() if methods == set(values)}


def ranks(records: Sequence[Record]) -> list[Record]:
    """Return the mean rank of each method in each group of problems; equal values share a rank."""
    groups: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (problem, _), values in cells(records).items():
        for method, value in values.items():
            below = sum(other < value for other in values.values())
            equal = sum(other == value for other in values.values())
            for group in (PROBLEMS[problem].group, "all"):
                groups[group][method].append(below + (equal + 1) / 2)
    order = [*dict.fromkeys(problem.group for problem in PROBLEMS.values()), "all"]
    return [
        {
            "group": group,
            "searches": len(next(iter(of.values()))),
            "ranks": {m: round(statistics.mean(of[m]), 2) for m in METHODS if m in of},
        }
        for group, of in sorted(groups.items(), key=lambda pair: order.index(pair[0]))
        if group != "all" or len(groups) > 2
    ]


def pairs(records: Sequence[Record]) -> list[Record]:
    """Return wins and losses of the first of the methods against each other one, by group.

    Each pair counts the searches that both have. ``p`` is that of the two-sided sign test.
    """
    known = finals(records)
    methods = [m for m in METHODS if any(m in values for values in known.values())]
    rows = []
    for other in methods[1:]:
        for group in [row["group"] for row in ranks(records)]:
            both = [
                (values[methods[0]], values[other])
                for (problem, _), values in known.items()
                if group in (PROBLEMS[problem].group, "all") and {methods[0], other} <= set(values)
            ]
            wins, losses = sum(a < b for a, b in both), sum(a > b for a, b in both)
            rows.append(
                {
                    "group": group,
                    "method": methods[0],
                    "other": other,
                    "wins": wins,
                    "losses": losses,
                    "equal": len(both) - wins - losses,
                    "p": float(f"{_sign_test(wins, losses):.3g}"),
                }
            )
    return rows


def _sign_test(wins: int, losses: int) -> float:
    """Return the probability of a ratio at least as unequal if both were equally likely."""
    n, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2.0 * sum(math.comb(n, i) for i in range(fewer + 1)) / 2.0**n)


def print_ranks(records: Sequence[Record]) -> None:
    """Print mean ranks and pairs as text; nothing with fewer than two methods."""
    for row in ranks(records):
        ranked = "  ".join(f"{method} {rank}" for method, rank in row["ranks"].items())
        print(f"mean rank, {row['group']} ({row['searches']} searches): {ranked}")
    for row in pairs(records):
        figures = f"{row['wins']}:{row['losses']}, {row['equal']} equal, p {row['p']:.2g}"
        print(f"{row['method']} : {row['other']}, {row['group']}: {figures}")


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


def rst(rows: Sequence[Record], times: Sequence[Record], records: Sequence[Record]) -> str:
    """Return the tables as reStructuredText; ranks only if the problems have several groups."""
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    cells = {(row["problem"], row["method"]): _cell(row) for row in rows}
    problems = [name for name in PROBLEMS if any(row["problem"] == name for row in rows)]
    table = [["Problem", "Trials", *methods]]
    for name in problems:
        regrets = [cells.get((name, method), "-") for method in methods]
        table.append([PROBLEMS[name].label, str(PROBLEMS[name].trials), *regrets])
    is_task = all(row["group"].endswith("tasks") for row in rows)  # their minima are not known
    what = "Lowest value" if is_task else "True regret at the lowest value observed"
    title = f"{what}: median (quartiles), number of searches"
    parts = [_list_table(title, table)]
    if any(row["group"] != "functions" for row in rows):
        parts += _rank_tables(records)
    if times:
        table = [["n", *(_at(t).replace("+", ", running ") for t in TIMINGS)]]
        for method in METHODS:
            if any(seconds := _time_cells(times, method)):
                table.append([method, *(cell or "-" for cell in seconds)])
        title = "Processor seconds of a suggestion at n observations in 6 dimensions, one thread"
        parts.append(_list_table(title, table))
    return ".. Written by benchmarks/search.py --rst; do not edit.\n\n" + "\n".join(parts)


def _rank_tables(records: Sequence[Record]) -> list[str]:
    """Return the tables of mean ranks, and of pairs."""
    ranked = ranks(records)
    methods = list(ranked[0]["ranks"]) if ranked else []
    table = [["Group", "Searches", *methods]]
    for row in ranked:
        table.append([row["group"], str(row["searches"]), *map(str, row["ranks"].values())])
    parts = [_list_table(f"Mean rank, 1 to {len(methods)}; 1 is best", table)]
    lines: dict[str, list[str]] = defaultdict(list)
    for row in pairs(records):
        equal = f", {row['equal']} equal" if row["equal"] else ""
        lines[row["group"]].append(f"{row['wins']} : {row['losses']}{equal} ({row['p']:.2g})")
    table = [["Group", *methods[1:]], *([group, *found] for group, found in lines.items())]
    title = (
        f"Searches that {methods[0]} wins and loses against the others, pairs of equal seed "
        "(p of the sign test)"
    )
    return [*parts, _list_table(title, table)]


def _cell(row: Record) -> str:
    """Return the regret; a task has no known minimum, so its values differ in later digits."""
    digits = 4 if row["group"].endswith("tasks") else 2
    low, median, high = (
        f"{value:.{digits}g}" for value in (row["quartiles"][0], row["median"], row["quartiles"][1])
    )
    return f"{median} ({low}, {high}), {row['seeds']}" if row["seeds"] > 1 else median


def _list_table(title: str, table: Sequence[Sequence[str]]) -> str:
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for first, *others in table:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return "\n".join(lines) + "\n"
