"""The config.json of the HIPS variant of Spearmint, as a config.pb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from spearmint.config import experiment_pb2 as pb
from spearmint.errors import InputError, reason_of
from spearmint.outputs import MAIN, OBJECTIVE

NAME = "config.json"
_TYPES = {"FLOAT", "INT", "ENUM"}
_KNOWN = {"language", "main-file", "experiment-name", "variables", "likelihood"}
_FIX = "Write config.pb by hand: docs/reference/config.rst has all fields."


def read_hips(path: Path) -> str:
    """Return the text of config.pb for a config.json; empty if there is no such config.

    Variables, the main file and the language are the same. A task of type CONSTRAINT becomes a
    constraint with min 0. Other options, such as ``likelihood`` and ``polling-time``, are named in
    a comment, because they have no effect here.

    Raises:
        InputError: The file is not JSON, or has an invalid value.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}", "Correct the file.") from None
    if not _has_keys(data):
        return ""
    if not isinstance(data.get("variables"), dict):
        raise InputError(f"{path} has no variables", _FIX)
    language = str(data.get("language", "PYTHON")).upper()
    if language != "PYTHON":
        raise InputError(f"{path}: language {language!r} is not supported", _FIX)
    main = data.get("main-file")
    if not isinstance(main, str) or not main:
        raise InputError(f"{path} has no main-file", _FIX)
    try:
        message = pb.Experiment(language=pb.PYTHON, name=main.removesuffix(".py"))
    except ValueError:  # half of a surrogate pair
        raise InputError(f"{path}: main-file {main!r} is not valid text", _FIX) from None
    for name, spec in data["variables"].items():
        _add(message, path, name, spec)
    used = _KNOWN - {"likelihood"} | ({"tasks"} if _add_tasks(message, path, data) else set())
    ignored = sorted(data.keys() - used)
    ignored = [key.encode("unicode_escape").decode() for key in ignored]  # on one line
    comment = f"# Not used: {', '.join(ignored)}\n" if ignored else ""
    return f"# From {path.name}\n{comment}{text_format.MessageToString(message)}"


def is_hips(path: Path) -> bool:
    """Return whether a file is a config.json of the HIPS variant: many programs have one."""
    try:
        return _has_keys(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return False


def _has_keys(data: Any) -> bool:
    return isinstance(data, dict) and ("main-file" in data or "variables" in data)


def _add(message: pb.Experiment, path: Path, name: str, spec: Any) -> None:
    kind = str(spec.get("type", "")).upper() if isinstance(spec, dict) else ""
    if kind not in _TYPES:
        raise InputError(f"{path}: variable {name!r} has no type FLOAT, INT or ENUM", _FIX)
    try:
        added = message.variable.add(name=name)
        added.type = getattr(pb.Experiment.ParameterSpec, kind)
        added.size = int(spec.get("size", 1))
        if kind == "ENUM":
            added.options.extend(map(str, spec["options"]))
        else:
            added.min, added.max = float(spec["min"]), float(spec["max"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: variable {name!r}: {error!r}", _FIX) from None


def _add_tasks(message: pb.Experiment, path: Path, data: dict[str, Any]) -> bool:
    """Add the objective and the constraints; False if there are no tasks, or several objectives.

    A constraint is met if its value is not negative (Hernandez-Lobato et al., "Predictive Entropy
    Search for Bayesian Optimization with Unknown Constraints", 2015, equation 1).
    """
    tasks = data.get("tasks", {})
    if not isinstance(tasks, dict) or not all(isinstance(task, dict) for task in tasks.values()):
        raise InputError(f"{path}: tasks are not objects with a type", _FIX)
    kinds = {name: str(task.get("type", "OBJECTIVE")).upper() for name, task in tasks.items()}
    if wrong := [kind for kind in kinds.values() if kind not in ("OBJECTIVE", "CONSTRAINT")]:
        raise InputError(f"{path}: unknown type {wrong[0]!r} of a task", _FIX)
    goals = [name for name, kind in kinds.items() if kind == "OBJECTIVE"]
    if len(goals) != 1:
        return False
    try:
        if goals[0] not in (MAIN, OBJECTIVE):
            message.objective.add(name=goals[0])
        for name in sorted(kinds.keys() - {goals[0]}):
            message.constraint.add(name=name, min=0.0)
    except ValueError as error:
        raise InputError(f"{path}: tasks: {error}", _FIX) from None
    return True
