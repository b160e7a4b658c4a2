"""The table of outcomes, as text and for the documentation; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.queue_faults.judge import Outcome

_HEADS = ("driver", "complete", "lost", "broken", "run twice to the end", "GPUs taken twice")
_HEADS += ("orphans", "jobs left", "runs cut off", "kills", "errors", "seconds")


def table(outcomes: Iterable[Outcome]) -> str:
    """Return a simple table of reStructuredText with a row for each outcome."""
    return simple_table(_HEADS, [_row(outcome) for outcome in outcomes])


def _row(outcome: Outcome) -> tuple[str, ...]:
    found = outcome.verdict
    cells = (found.complete, found.lost + found.wrong, found.broken, found.ended_twice)
    cells += (found.overlaps, len(outcome.orphans), len(outcome.jobs), found.cut_off)
    cells += (outcome.kills, outcome.errors)
    return (outcome.driver, *map(str, cells), f"{outcome.seconds:.0f}")


def simple_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a simple table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([rule, line(heads), rule, *map(line, rows), rule])
