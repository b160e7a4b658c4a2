"""A config.pb as a protobuf message, with the line and column of each field for errors."""

from __future__ import annotations

import re
from pathlib import Path

from google.protobuf import text_format

from spearmint.config import experiment_pb2 as pb
from spearmint.config.positions import FieldPath, locate_fields
from spearmint.config.schema import experiment_class
from spearmint.errors import ConfigError, did_you_mean
from spearmint.resources import Resources


class Document:
    """A parsed config.pb.

    Args:
        path: The file, for messages.
        text: Its content.
        resources: Dataclass that declares the keys of the block ``resources``.

    Raises:
        ConfigError: The text is not in protobuf text format, or has an unknown field.
    """

    def __init__(self, path: Path, text: str, resources: type = Resources) -> None:
        self.path = path
        self.message = experiment_class(resources=resources)()
        self._places = locate_fields(path, text, self.message)
        try:
            text_format.Parse(text, self.message)
        except text_format.ParseError as error:
            raise self._syntax(error) from None

    def error(self, what: str, fix: str, *at: str | int) -> ConfigError:
        """Return an error at the field ``at``, or at the innermost block around it."""
        place: FieldPath = at
        while place and place not in self._places:
            place = place[:-1]
        line, column = self._places.get(place, (0, 0))
        return ConfigError(self.path, what, fix, line=line, column=column)

    def _syntax(self, error: text_format.ParseError) -> ConfigError:
        line, column = error.GetLine() or 0, error.GetColumn() or 0
        what = re.sub(r"^\d+:\d+ ?: ", "", str(error)).replace("starmint.spearmint.", "")
        fix = ""
        if value := re.search(r'Enum type "([\w.]+)" has no value named', what):
            enum = {
                "Language": pb.Language,
                "Direction": pb.Direction,
                "Experiment.ParameterSpec.Type": pb.Experiment.ParameterSpec.Type,
            }[value.group(1)]
            word = what.rpartition(" ")[2].rstrip(".")
            what = f"unknown value {word}; expected one of {', '.join(enum.keys())}"
            fix = did_you_mean(word, enum.keys())
        return ConfigError(self.path, what, fix, line=line, column=column)
