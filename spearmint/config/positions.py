"""Line and column of each field in the text of a config.pb."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from spearmint.errors import ConfigError, did_you_mean

Place = tuple[int, int]
"""Line and column, both counted from 1."""

FieldPath = tuple[str | int, ...]
"""``("variable", 0, "min")``: names, each with the number of earlier fields of that name."""

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<other>[-+.0-9][-+.0-9A-Za-z]*|.)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_word: bool
    place: Place


def _tokens(text: str) -> Iterator[_Token]:
    line, start = 1, 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            place = (line, match.start() - start + 1)
            yield _Token(match.group(), match.lastgroup == "word", place)
        newlines = match.group().count("\n")
        if newlines:
            line += newlines
            start = match.start() + match.group().rindex("\n") + 1


def locate_fields(path: Path, text: str, message: Message) -> Mapping[FieldPath, Place]:
    """Return the line and column of each field of ``text``.

    Raises:
        ConfigError: ``text`` has a field that ``message`` does not have.
    """
    places: dict[FieldPath, Place] = {}
    open_messages: list[tuple[FieldPath, Any]] = [((), message.DESCRIPTOR)]
    opened: tuple[FieldPath, Any] | None = None
    previous, in_list = "", False
    for token in _tokens(text):
        if token.text in "{<":
            if opened is None:
                return places  # not text format; the parser reports it better
            open_messages.append(opened)
        elif token.text in "}>":
            if len(open_messages) == 1:
                return places
            open_messages.pop()
        elif token.text in "[]":
            in_list = token.text == "["
        elif token.is_word and previous != ":" and not in_list:
            at, inside = open_messages[-1]
            if token.text not in inside.fields_by_name:
                raise _unknown_field(path, token, at, inside)
            count = sum(1 for known in places if known[:-1] == (*at, token.text))
            here = (*at, token.text, count)
            places[here] = token.place
            child = inside.fields_by_name[token.text].message_type
            opened = (here, child) if child is not None else None
        previous = token.text
    return places


_STEPS = "Steps of a training are in a block: fidelity { min: 1 max: 81 reduction_factor: 3 }"
_OTHER_WORDS = {
    "budget": f"{_STEPS}. The option --budget limits dollars.",
    "rungs": _STEPS,
    "resource": _STEPS,
}


def _unknown_field(path: Path, token: _Token, at: FieldPath, message: Descriptor) -> ConfigError:
    names = [field.name for field in message.fields]
    where = f" in block {at[-2]}" if at else ""
    line, column = token.place
    return ConfigError(
        path,
        f"unknown field {token.text!r}{where}; expected one of {', '.join(names)}",
        did_you_mean(token.text, names) or ("" if at else _OTHER_WORDS.get(token.text, "")),
        line=line,
        column=column,
    )
