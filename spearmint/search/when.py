"""Conditional variables of a space in Python: ``when((0.1, 9), model="svm")``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spearmint.errors import InputError


@dataclass(frozen=True, slots=True)
class When:
    """A variable that is only active where others have certain values.

    Attributes:
        form: What the variable can be, as without a condition.
        conditions: By name of another variable: its value, or several in a list or range.
    """

    form: Any
    conditions: Mapping[str, Any] = field(default_factory=dict)


def when(form: Any, conditions: Mapping[str, Any] | None = None, /, **more: Any) -> When:
    """Return the variable ``form`` that is only active where other variables have certain values.

    The other variables are whole numbers, choices or bool. If there are several, all must have one
    of their values. A function gets only the active variables of a trial.

    Args:
        form: What the variable can be: a pair, range, list or bool.
        conditions: By name of another variable: its value, or several in a list or range. Only
            needed for names that are not identifiers.
        more: The same as keywords.

    Raises:
        InputError: There is no condition, or ``form`` already has one.

    Example:
        >>> space = {
        ...     "model": ["svm", "forest", "boosting"],
        ...     "C": when((1e-3, 1e3, "log"), model="svm"),
        ...     "depth": when(range(1, 20), model=["forest", "boosting"]),
        ... }
    """
    every = {**(conditions or {}), **more}
    if not every:
        raise InputError(
            "when() without a condition", 'Write, for example: when(form, model="svm")'
        )
    if isinstance(form, When):
        fix = "Write all conditions in one call: when(form, model=..., kernel=...)."
        raise InputError("when() of a variable that already has a condition", fix)
    return When(form, every)
