"""The ``when`` of variables: read from text, and checked against the variables that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from spearmint.conditions import Condition, requirements
from spearmint.config.document import Document
from spearmint.errors import did_you_mean
from spearmint.model import Kind, Variable


class ConditionProblem(Exception):
    """A condition that cannot be used: number ``k`` of variable ``i``, and the fix."""

    def __init__(self, i: int, k: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.i, self.k, self.what, self.fix = i, k, what, fix


def read_conditions(document: Document, variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return ``variables`` with the conditions of the file.

    Raises:
        ConfigError: A condition has another form, names a missing variable or value, or depends on
            itself.
    """
    texts = {i: list(spec.when) for i, spec in enumerate(document.message.variable) if spec.when}
    try:
        return with_conditions(variables, texts)
    except ConditionProblem as problem:
        at = ("variable", problem.i, "when", problem.k)
        raise document.error(problem.what, problem.fix, *at) from None


def with_conditions(
    variables: Sequence[Variable], texts: Mapping[int, Sequence[str]]
) -> tuple[Variable, ...]:
    """Return ``variables`` with conditions; ``texts`` has those of variable ``i``.

    Raises:
        ConditionProblem: A condition is invalid.
    """
    by_name = {variable.name: variable for variable in variables}
    found = tuple(
        replace(variable, when=tuple(_read(by_name, variable, i, k, t) for k, t in enumerate(some)))
        if (some := texts.get(i))
        else variable
        for i, variable in enumerate(variables)
    )
    if texts:
        _require_no_cycle(found)
        _require_possible(found)
    return found


def _read(
    by_name: Mapping[str, Variable], variable: Variable, i: int, k: int, text: str
) -> Condition:
    where = f"when {text!r} of variable {variable.name!r}"
    name, rest = _split(by_name, text)
    if not (name and rest):
        fix = 'Write a variable and a value, for example: when: "model=svm" or "model=svm|forest".'
        raise ConditionProblem(i, k, f"invalid {where}", fix)
    parent = by_name.get(name)
    if parent is None:
        hint = did_you_mean(name, by_name) or f"Name one of: {', '.join(by_name)}."
        raise ConditionProblem(i, k, f"{where}: unknown variable {name!r}", hint)
    if parent.kind is Kind.FLOAT or parent.size > 1:
        form = f"{parent.size} {parent.kind}"
        fix = "A condition needs an ENUM or INT variable of size 1."
        raise ConditionProblem(i, k, f"{where}: {name!r} is {form}", fix)
    values: list[str | int] = []
    for word in _words(parent, rest):
        value = _value(parent, word)
        if value is None:
            what = f"{where}: {word!r} is not a value of {name!r}"
            raise ConditionProblem(i, k, what, _values_of(parent, word))
        if value in values:
            what = f"{where}: duplicate value {word!r}"
            raise ConditionProblem(i, k, what, "List each value once.")
        values.append(value)
    # In one order: two conditions that mean the same are equal.
    places = {option: place for place, option in enumerate(parent.options)}
    values.sort(key=lambda value: places[str(value)] if places else int(value))
    return Condition(name, tuple(values))


def _split(by_name: Mapping[str, Variable], text: str) -> tuple[str, str]:
    """Return the name and the values; the first name that exists, if there are several ``=``."""
    parts = text.split("=")
    splits = [("=".join(parts[:n]).strip(), "=".join(parts[n:])) for n in range(1, len(parts))]
    known = (split for split in splits if split[0] in by_name)
    name, rest = next(known, splits[0] if splits else ("", ""))
    return name, rest if rest.strip() else ""


def _words(parent: Variable, text: str) -> Iterator[str]:
    """Yield the values between ``|``; the longest one where an option itself has a ``|``."""
    parts = text.split("|")
    while parts:
        for n in range(len(parts), 0, -1):
            word = "|".join(parts[:n])
            word = word if word in parent.options else word.strip()
            if n == 1 or word in parent.options:
                break
        yield word
        del parts[:n]


def _value(parent: Variable, word: str) -> str | int | None:
    """Return the value that ``word`` means; None if ``parent`` cannot have it."""
    if parent.kind is Kind.ENUM:
        return word if word in parent.options else None
    try:
        value = int(word)
    except ValueError:
        return None
    return value if parent.low <= value <= parent.high else None


def _values_of(parent: Variable, word: str) -> str:
    if parent.kind is Kind.INT:
        return f"Write integers from {parent.low:g} to {parent.high:g}, such as {parent.low:g}|..."
    names = f"Its options are: {', '.join(parent.options)}."
    return f"{names} {did_you_mean(word, parent.options)}".rstrip()


def _require_no_cycle(variables: Sequence[Variable]) -> None:
    places = {variable.name: i for i, variable in enumerate(variables)}
    parents = {variable.name: [each.parent for each in variable.when] for variable in variables}
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = error.args[1][:0:-1]  # each variable depends on the next
        first = min(range(len(cycle)), key=lambda i: places[cycle[i]])
        path = [*cycle[first:], *cycle[: first + 1]]
        what = f"the conditions of variables form a cycle: {' -> '.join(path)}"
        fix = f"Remove the when of one of them; {path[0]!r} depends on itself."
        raise ConditionProblem(places[path[0]], 0, what, fix) from None


def _require_possible(variables: tuple[Variable, ...]) -> None:
    needed = requirements(variables)
    for i, variable in enumerate(variables):
        left: dict[str, set[str | int]] = {}
        for condition in needed.get(variable.name, ()):
            values = left.setdefault(condition.parent, set(condition.values))
            values &= set(condition.values)
            if not values:
                what = (
                    f"variable {variable.name!r} is never active: its conditions and those of its "
                    f"parents require different values of {condition.parent!r}"
                )
                raise ConditionProblem(i, 0, what, "Change or remove one of them.")
