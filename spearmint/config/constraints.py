"""Constraints of a config.pb, and the names that values of a trial can have."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spearmint.config.document import Document
from spearmint.model import Variable
from spearmint.outputs import MAIN, OBJECTIVE, Constraint, Objective

RESERVED = frozenset(
    {OBJECTIVE, MAIN, "region", "trial", "state", "value", "seconds", "reason", "feasible"}
)
"""Names of other values in results and exported files."""


def read_constraints(
    document: Document, variables: Iterable[Variable], objectives: Iterable[Objective]
) -> tuple[Constraint, ...]:
    """Return the constraints.

    Raises:
        ConfigError: A field is missing or invalid, or a name is taken.
    """
    taken = {name for variable in variables for name in (variable.name, *variable.elements())}
    taken |= {objective.name for objective in objectives}
    found: list[Constraint] = []
    for i in range(len(document.message.constraint)):
        constraint = _read(document, i)
        if problem := name_problem(constraint.name, taken):
            fix = "Give each value of a trial a different name."
            raise document.error(f"constraint {problem}", fix, "constraint", i, "name", 0)
        taken.add(constraint.name)
        found.append(constraint)
    return tuple(found)


def name_problem(name: str, taken: Iterable[str]) -> str:
    """Return why a constraint cannot have this name; empty if it can."""
    if name in RESERVED:
        return f"{name!r} has the name of another value"
    return (
        f"{name!r} has the name of a variable, an objective or another constraint"
        if name in taken
        else ""
    )


def limits_problem(low: float, high: float) -> str:
    """Return why limits are invalid; empty if they are valid."""
    if math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf:
        return "has a limit that is not finite"
    if math.isinf(low) and math.isinf(high):
        return "has no limit"
    return f"has min {low:g} above max {high:g}" if low > high else ""


def _read(document: Document, i: int) -> Constraint:
    block, at = document.message.constraint[i], ("constraint", i)
    if not block.name.strip():
        fix = 'Write, for example: constraint { name: "memory_gb" max: 80 }'
        raise document.error("constraint without a name", fix, *at)
    low = block.min if block.HasField("min") else -math.inf
    high = block.max if block.HasField("max") else math.inf
    if problem := limits_problem(low, high):
        fix = "Write one or two finite limits, such as max: 80."
        raise document.error(f"constraint {block.name!r} {problem}", fix, *at)
    return Constraint(name=block.name, low=low, high=high)
