"""The config.pb of a space in Python, which lets all commands read its search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from google.protobuf import text_format

from spearmint.config import experiment_pb2 as pb
from spearmint.config.reader import load_experiment
from spearmint.config.variables import describe
from spearmint.errors import InputError, NotWritable, StudyMismatch, next_command, reason_of
from spearmint.layout import Layout, write_text
from spearmint.linear import texts_of
from spearmint.model import Experiment, Kind
from spearmint.outputs import output_lines
from spearmint.search.space import Space
from spearmint.store.opening import (
    FIDELITY_LINE,
    delete_study,
    stored_declaration,
    stored_trials,
    study_names,
)
from spearmint.store.owner import storage_url

_NAME = "spearmint_objective"  # a module of the user must not have this name
_DIRECTION = "(direction)"  # in the lines of a stored declaration
_HEADER = "# Written by spearmint.Search. Change the space in your Python code, not here.\n"

_TYPES = {
    Kind.FLOAT: pb.Experiment.ParameterSpec.FLOAT,
    Kind.INT: pb.Experiment.ParameterSpec.INT,
    Kind.ENUM: pb.Experiment.ParameterSpec.ENUM,
}


def declare(
    directory: Path, space: Space, storage: str | None, *, maximize: bool | None
) -> Experiment:
    """Write config.pb of ``space``, or check that it declares the same, and return it.

    The caller holds the lock of the directory. Another space replaces that of a search without
    trials.

    Args:
        directory: Directory of the search.
        space: The space.
        storage: URL of the storage; None for that of earlier runs.
        maximize: The direction; None for that of earlier runs, or minimize.

    Raises:
        StudyMismatch: The directory has trials of another space or direction.
        InputError: The directory has a config.pb of a user, or cannot be written.
    """
    path = directory / "config.pb"
    name = _NAME if storage is None else f"{_NAME}_{directory.name}"  # others share the storage
    if path.exists():
        _require_own(path)
        known = load_experiment(path)
        maximize = known.maximize if maximize is None else maximize
        stored = {**_lines(known), _DIRECTION: _direction(known.maximize)}
        differences = _differences(stored, space, maximize)
        if differences:
            _require_empty(known, differences, storage)
        elif _changeable(known) == _changeable(space):
            return known
    elif stored := stored_declaration(name, storage_url(Layout(directory), storage)):
        maximize = stored.get(_DIRECTION) == "maximize" if maximize is None else maximize
        if differences := _differences(stored, space, maximize):
            raise StudyMismatch(
                f"{directory} has no config.pb, and its search has another space:\n"
                + "\n".join(differences),
                "Give the stored space, or choose another directory.",
            )
    text = _HEADER + text_format.MessageToString(_message(name, space, bool(maximize)))
    try:
        write_text(path, text, durable=True)
    except OSError as error:
        raise NotWritable(f"cannot write {path}: {reason_of(error)}") from None
    return load_experiment(path)


def _message(name: str, space: Space, maximize: bool) -> pb.Experiment:
    message = pb.Experiment(language=pb.PYTHON, name=name)
    if not space.objectives:
        message.direction = pb.MAXIMIZE if maximize else pb.MINIMIZE
    for objective in space.objectives:
        larger = pb.MAXIMIZE if objective.maximize else pb.MINIMIZE
        block = message.objective.add(name=objective.name, direction=larger)
        if objective.reference is not None:
            block.reference = objective.reference
    for variable in space.variables:
        added = message.variable.add(name=variable.name)
        added.type = _TYPES[variable.kind]
        added.when.extend(map(str, variable.when))
        if variable.kind is Kind.ENUM:
            added.options.extend(variable.options)
        else:
            added.min, added.max = variable.low, variable.high
            if variable.log:
                added.log = True
            if variable.guess is not None:
                added.guess, added.spread = variable.guess, variable.spread
    if space.fidelity is not None:
        message.fidelity.name, message.fidelity.max = space.fidelity.name, space.fidelity.high
        message.fidelity.min = space.fidelity.low
        message.fidelity.reduction_factor = space.fidelity.reduction
    message.require.extend(texts_of(space.linear))
    for constraint in space.constraints:
        limits = message.constraint.add(name=constraint.name)
        if math.isfinite(constraint.low):
            limits.min = constraint.low
        if math.isfinite(constraint.high):
            limits.max = constraint.high
    return message


def _require_own(path: Path) -> None:
    """Raise InputError if a user wrote config.pb."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason_of(error)}") from None
    if not text.startswith(_HEADER):
        raise InputError(
            f"{path} exists and was not written by spearmint.Search",
            f"Search it: spearmint.Search({str(path)!r}). Or choose another directory.",
        )


def _differences(stored: Mapping[str, str], space: Space, maximize: bool) -> list[str]:
    """Return a line for each variable that differs."""
    given = {**_lines(space), _DIRECTION: _direction(maximize)}
    return [
        f"  {name}: stored {stored.get(name, 'nothing')}; now {given.get(name, 'nothing')}"
        for name in dict.fromkeys((*stored, *given))
        if stored.get(name) != given.get(name)
    ]


def _changeable(space: Space | Experiment) -> tuple[object, ...]:
    """Return the parts that can change during a search."""
    guesses = [(variable.guess, variable.spread) for variable in space.variables]
    references = [objective.reference for objective in space.objectives]
    return guesses, references, texts_of(space.linear)


def _lines(space: Space | Experiment) -> dict[str, str]:
    lines = {variable.name: describe(variable) for variable in space.variables}
    if space.fidelity is not None:
        lines[FIDELITY_LINE] = space.fidelity.describe()
    return {**lines, **output_lines(space.objectives, space.constraints)}


def _direction(maximize: bool) -> str:
    return "maximize" if maximize else "minimize"


def _require_empty(known: Experiment, differences: list[str], storage: str | None) -> None:
    """Delete the study of ``known`` if it has no trial; raise StudyMismatch otherwise."""
    url = storage_url(Layout(known.directory), storage)
    if known.study_name not in study_names(url):
        return
    if stored_trials(known.study_name, url)[1]:
        raise StudyMismatch(
            f"{known.directory} has trials of another search:\n" + "\n".join(differences),
            "Choose another directory NEW; to take the trials along, then run: "
            f"{next_command('import', 'NEW', known.directory)}\n"
            f"Or delete the search: {next_command('cleanup', known.directory)}",
        )
    delete_study(known.study_name, url)
