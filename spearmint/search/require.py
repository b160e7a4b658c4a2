"""Linear constraints of a space in Python: texts such as ``"first >= second"``."""

from __future__ import annotations

from collections.abc import Sequence

from spearmint.config.linear import guesses_problem, linear_constraints
from spearmint.config.linear_text import LinearProblem
from spearmint.errors import InputError
from spearmint.linear import LinearConstraint
from spearmint.model import Variable

_FORM = 'Write a text, or a list of them: require=["units_1 >= units_2"]'


def read_require(
    require: str | Sequence[str] | None, variables: tuple[Variable, ...]
) -> tuple[LinearConstraint, ...]:
    """Return the linear constraints of a text, or of several.

    Raises:
        InputError: A text is invalid, no point meets it, or the guesses do not.
    """
    texts = [require] if isinstance(require, str) else require or ()
    if not isinstance(texts, list | tuple | set):
        raise InputError(f"invalid require: {require!r}", _FORM)
    found: list[LinearConstraint] = []
    for text in texts:
        if not isinstance(text, str) or any("\ud800" <= char <= "\udfff" for char in text):
            raise InputError(f"invalid require: {text!r}", _FORM)
        try:
            found += linear_constraints(text, variables)
        except LinearProblem as error:
            raise InputError(error.what, error.fix) from None
    if problem := guesses_problem(found, variables):
        raise InputError(*problem)
    return tuple(found)
