"""Objectives of a config.pb."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spearmint.config import experiment_pb2 as pb
from spearmint.config.constraints import RESERVED
from spearmint.config.document import Document
from spearmint.model import Variable
from spearmint.outputs import MAIN, OBJECTIVE, Objective

_RESERVED = RESERVED - {OBJECTIVE, MAIN}


def read_objectives(document: Document, variables: Iterable[Variable]) -> tuple[Objective, ...]:
    """Return the named objectives; empty if there are none.

    Raises:
        ConfigError: A field is missing or invalid, or a name is taken.
    """
    taken = {name for variable in variables for name in (variable.name, *variable.elements())}
    found: list[Objective] = []
    for i, block in enumerate(document.message.objective):
        at = ("objective", i)
        if not block.name.strip():
            fix = 'Write, for example: objective { name: "error" }'
            raise document.error("objective without a name", fix, *at)
        if problem := objective_problem(block.name, taken):
            fix = "Give each value of a trial a different name."
            raise document.error(f"objective {problem}", fix, *at, "name", 0)
        if not math.isfinite(block.reference):
            fix = f"Write the worst value of {block.name} that is of use, or leave it out."
            raise document.error("reference is not a finite number", fix, *at, "reference", 0)
        taken.add(block.name)
        found.append(
            Objective(
                name=block.name,
                maximize=block.direction == pb.MAXIMIZE,
                reference=block.reference if block.HasField("reference") else None,
            )
        )
    if len(found) == 1 and found[0].reference is not None:
        fix = "Remove it: the best value of one objective does not depend on it."
        what = "reference needs several objectives"
        raise document.error(what, fix, "objective", 0, "reference", 0)
    if found and document.message.HasField("direction"):
        fix = "Write the direction into each block: objective { ... direction: MAXIMIZE }"
        raise document.error("direction and objective exclude each other", fix, "direction", 0)
    return tuple(found)


def objective_problem(name: str, taken: Iterable[str]) -> str:
    """Return why an objective cannot have this name; empty if it can."""
    if name in _RESERVED:
        return f"{name!r} has the name of another value"
    return f"{name!r} has the name of a variable or of another objective" if name in taken else ""
