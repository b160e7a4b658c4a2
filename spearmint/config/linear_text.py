"""Read comparisons of linear expressions: ``2 * units[0] - 1 <= units[1] <= 512``.

=========== =========================================================
expression  grammar
=========== =========================================================
comparison  sum ( ("<=" | ">=" | "<" | ">" | "==") sum )+
sum         product ( ("+" | "-") product )*
product     factor ( ("*" | "/") factor )*
factor      ("+" | "-")* ( number | variable | "(" sum ")" )
variable    name, or name "[" index "]" if it has several elements
=========== =========================================================

A name is the longest one that fits, so that it can have spaces and signs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spearmint.errors import did_you_mean
from spearmint.model import Kind, Variable

_MOST_LETTERS, _MOST_BRACKETS = 10_000, 50
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?!\w)")
_SIGN = re.compile(r"<=|>=|==|<|>")
_INDEX = re.compile(r"\s*\[\s*(\d{1,9})\s*\]")
_WORD = re.compile(r"[^\s+*/()<>=-]+|.")
_FORM = 'Write, for example: require: "units_1 >= units_2" or "momentum + 2 * dropout <= 1.2"'


class LinearProblem(Exception):
    """A text that is not a linear constraint, and the fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


@dataclass(frozen=True, slots=True)
class Form:
    """A linear expression: a constant, and the weights of elements of variables."""

    constant: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)

    def plus(self, other: Form, factor: float = 1.0) -> Form:
        """Return this form plus ``factor`` times another one."""
        sums = dict(self.weights)
        for name, weight in other.weights.items():
            sums[name] = sums.get(name, 0.0) + factor * weight
        return Form(self.constant + factor * other.constant, sums)

    def times(self, factor: float) -> Form:
        """Return ``factor`` times this form."""
        weights = {name: factor * weight for name, weight in self.weights.items()}
        return Form(factor * self.constant, weights)


def read_comparison(text: str, variables: Sequence[Variable]) -> tuple[list[Form], list[str]]:
    """Return the sides of a comparison, and the signs between them.

    Raises:
        LinearProblem: The text is invalid.
    """
    return _Reader(text, variables).comparison()


class _Reader:
    """A recursive descent over one text."""

    def __init__(self, text: str, variables: Sequence[Variable]) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._variables = sorted(variables, key=lambda variable: -len(variable.name))
        if len(text) > _MOST_LETTERS:
            raise LinearProblem(f"require {text[:40]!r}... is too long", "Write several.")

    def comparison(self) -> tuple[list[Form], list[str]]:
        sides, signs = [self._sum()], []
        while self._rest():
            found = _SIGN.match(self._text, self._at)
            if not found:
                raise self._unexpected("<=, >=, <, >, ==, + or -")
            signs.append(found.group())
            self._at = found.end()
            sides.append(self._sum())
        if not signs:
            raise LinearProblem(f"require {self._text!r} compares nothing", _FORM)
        return sides, signs

    def _sum(self) -> Form:
        total = self._product()
        while sign := self._take("+-"):
            total = total.plus(self._product(), -1.0 if sign == "-" else 1.0)
        return total

    def _product(self) -> Form:
        total = self._factor()
        while sign := self._take("*/"):
            other = self._factor()
            if sign == "/":
                total = self._quotient(total, other)
            elif total.weights and other.weights:
                raise self._not_linear("multiplies two variables")
            else:
                one, many = (other, total) if total.weights else (total, other)
                total = many.times(one.constant)
        return total

    def _quotient(self, total: Form, other: Form) -> Form:
        if other.weights:
            raise self._not_linear("divides by a variable")
        if other.constant == 0.0 or not math.isfinite(1.0 / other.constant):
            raise LinearProblem(f"require {self._text!r} divides by 0", _FORM)
        return Form(
            total.constant / other.constant,
            {name: weight / other.constant for name, weight in total.weights.items()},
        )

    def _factor(self) -> Form:
        factor = 1.0
        while sign := self._take("+-"):
            factor = -factor if sign == "-" else factor
        if self._take("("):
            return self._bracket().times(factor)
        if found := _NUMBER.match(self._text, self._at):
            self._at = found.end()
            return Form(factor * float(found.group()))
        return Form(0.0, {self._element(): factor})

    def _bracket(self) -> Form:
        self._depth += 1
        if self._depth > _MOST_BRACKETS:
            raise LinearProblem(f"require {self._text[:40]!r}... has too many brackets", _FORM)
        inside = self._sum()
        if not self._take(")"):
            raise self._unexpected(")")
        self._depth -= 1
        return inside

    def _element(self) -> str:
        """Return the element of a variable that follows."""
        variable = next(filter(self._follows, self._variables), None)
        if variable is None:
            raise self._unknown()
        self._at += len(variable.name)
        if variable.kind is Kind.ENUM:
            what = f"require {self._text!r}: {variable.name!r} is ENUM"
            raise LinearProblem(what, "Compare FLOAT and INT variables only.")
        index = _INDEX.match(self._text, self._at)
        if not index and variable.size == 1:
            return variable.name
        if not index or int(index.group(1)) >= variable.size:
            what = f"require {self._text!r}: {variable.name!r} has {variable.size} elements"
            last = variable.size - 1
            fix = f"Write {variable.name}[0] to {variable.name}[{last}]." if last else ""
            raise LinearProblem(what, fix or f"Write {variable.name}.")
        self._at = index.end()
        return variable.elements()[int(index.group(1))]

    def _follows(self, variable: Variable) -> bool:
        end = self._at + len(variable.name)
        name = " ".join(variable.name.split())
        if self._text[self._at : end] != name or name != variable.name:
            return False
        return not (name[-1].isalnum() or name[-1] == "_") or not re.match(r"\w", self._text[end:])

    def _unknown(self) -> LinearProblem:
        names = [v.name for v in reversed(self._variables) if v.kind is not Kind.ENUM]
        word = _WORD.match(self._text, self._at)
        if not word or not re.match(r"[^\W\d]", word.group()):
            return self._unexpected("a number or a variable")
        name = word.group().partition("[")[0]
        what = f"require {self._text!r}: unknown variable {name!r}"
        return LinearProblem(what, did_you_mean(name, names) or f"Name one of: {', '.join(names)}.")

    def _take(self, letters: str) -> str:
        """Return the next letter and pass it, if it is one of ``letters``; empty otherwise."""
        self._rest()
        letter = self._text[self._at : self._at + 1]
        if not letter or letter not in letters:
            return ""
        self._at += 1
        return letter

    def _rest(self) -> str:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        return self._text[self._at :]

    def _unexpected(self, expected: str) -> LinearProblem:
        found = repr(self._rest()[:20]) if self._rest() else "its end"
        what = f"require {self._text!r}: expected {expected}, found {found}"
        return LinearProblem(what, _FORM)

    def _not_linear(self, why: str) -> LinearProblem:
        what = f"require {self._text!r} is not linear: it {why}"
        return LinearProblem(what, "Write sums of variables that are multiplied by numbers.")
