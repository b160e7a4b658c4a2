"""Guesses in a space in Python: ``guess((1e-5, 1, "log"), 0.01)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spearmint.errors import InputError
from spearmint.search.when import When

SPREAD = 0.2
"""The spread unless it is given: that of config.pb."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A variable with a guess of its best value.

    Attributes:
        form: What the variable can be, as without a guess.
        value: The guess.
        spread: Its standard deviation, as a share of the range.
    """

    form: Any
    value: float
    spread: float = SPREAD


def guess(form: Any, value: float, spread: float = SPREAD) -> Guess:
    """Return the variable ``form`` with a guess of its best value.

    The first trial is at the guesses. The search looks near them first, and forgets them with the
    number of trials.

    Args:
        form: What the variable can be: a pair of numbers or a range.
        value: The guess, within the bounds.
        spread: How far the best value can be from the guess: a standard deviation, as a share of
            the range (of the range of logarithms with ``"log"``).

    Raises:
        InputError: ``form`` already has a guess or a condition.

    Example:
        >>> space = {"lr": guess((1e-5, 1, "log"), 0.01), "units": guess(range(8, 513), 64, 0.1)}
    """
    if isinstance(form, When | Guess):
        raise InputError(
            f"guess() of a {type(form).__name__.lower()}()",
            'Write one guess, inside of when(): when(guess((0.1, 9), 1), model="svm").',
        )
    return Guess(form, value, spread)
