"""Run the user's code in MATLAB's language by GNU Octave."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROGRAMS = ("octave-cli", "octave")
INSTALL = "sudo apt-get install octave"
"""Command that installs Octave on Debian and Ubuntu."""

_PROGRAM = """\
params = struct ();
{fields}
try
  result = feval ({name}, {job_id}, params);
  if ! (isnumeric (result) || islogical (result)) || ! isreal (result) || numel (result) != 1
    error ("%s returned %s of size %s, expected one number", ...
           {name}, class (result), mat2str (size (result)));
  endif
catch problem
  reason = problem.message;
  if ! isempty (problem.stack)
    reason = sprintf ("%s (%s:%d)", reason, problem.stack(1).name, problem.stack(1).line);
  endif
  fprintf (stderr, "error: %s\\n", reason);
  file = fopen ({reason}, "w");
  fputs (file, reason);
  fclose (file);
  exit (1);
end_try_catch
file = fopen ({value}, "w");
fprintf (file, "%.17g", result);
fclose (file);
"""


def find_octave() -> list[str] | None:
    """Return the command of Octave without windows; None if it is not installed."""
    for program in _PROGRAMS:
        if path := shutil.which(program):
            return [path, "--no-gui", "--quiet"]
    return None


def octave_program(
    name: str, job_id: int, entries: Mapping[str, Any], *, value: Path, reason: Path
) -> str:
    """Return a script that calls ``NAME(job_id, params)``.

    FLOAT and INT are column vectors, ENUM is a column of a cell array of strings.

    Args:
        name: Name of the function and of its file.
        job_id: Number of the trial.
        entries: Kind and values by variable, as in trial.json.
        value: File for the number that it returns.
        reason: File for the message of an error.
    """
    fields = "\n".join(
        f"params.({_text(variable)}) = {_column(entry)};" for variable, entry in entries.items()
    )
    return _PROGRAM.format(
        fields=fields,
        name=_text(name),
        job_id=job_id,
        value=_text(str(value)),
        reason=_text(str(reason)),
    )


def _column(entry: Mapping[str, Any]) -> str:
    values = entry["values"]
    if entry["kind"] == "ENUM":
        return f"{{{'; '.join(_text(str(value)) for value in values)}}}"
    return f"[{'; '.join(repr(value) for value in values)}]"


def _text(text: str) -> str:
    """Return a string literal of Octave."""
    return f'"{"".join(_character(character) for character in text)}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return f"\\{ord(character):03o}" if ord(character) < 32 else character
