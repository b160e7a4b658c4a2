"""Rungs of a search in Python: the steps of a full training, or a dict as in config.pb."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.config.fidelity import fidelity_problem
from spearmint.errors import InputError
from spearmint.fidelity import NAME, REDUCTION, Fidelity, next_to_resume
from spearmint.model import Trial
from spearmint.search.proposal import Part
from spearmint.store.session import Session

_FORM = 'Write fidelity=81, or fidelity={"name": "epochs", "min": 1, "max": 81}'
_KEYS = ("min", "max", "reduction_factor")


def read_fidelity(given: int | Mapping[str, Any] | None) -> Fidelity | None:
    """Return the rungs that a number of steps or a dict describes; None for None.

    Raises:
        InputError: A key is missing, unknown or invalid.
    """
    if given is None:
        return None
    fields = dict(given) if isinstance(given, Mapping) else {"max": given}
    name = fields.pop("name", NAME)
    known = {key: fields.pop(key) for key in _KEYS if key in fields}
    if fields:
        unknown = ", ".join(map(repr, fields))
        raise InputError(
            f"invalid fidelity: unknown {unknown}, expected {', '.join(('name', *_KEYS))}", _FORM
        )
    if "max" not in known or not isinstance(name, str) or not name.strip():
        raise InputError(f"invalid fidelity {given!r}", f"{_FORM}.")
    for key, value in known.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
            raise InputError(
                f"invalid fidelity: {key} is {value!r}, expected a whole number above 0", _FORM
            )
    fidelity = Fidelity(
        name=name.strip(),
        low=int(known.get("min", 1)),
        high=int(known["max"]),
        reduction=int(known.get("reduction_factor", REDUCTION)),
    )
    if problem := fidelity_problem(fidelity):
        raise InputError(f"fidelity has {problem}", f"{_FORM}.")
    return fidelity


def require_alone(fidelity: Fidelity | None, others: Mapping[str, object]) -> None:
    """Raise InputError if a search with rungs has arguments that exclude them, by name."""
    for name, value in others.items():
        if fidelity is not None and value:
            raise InputError(
                f"fidelity and {name} exclude each other",
                f"Remove one of them: a search with rungs does not support {name}.",
            )


def resumed(session: Session) -> Trial | None:
    """Store that the paused trial runs that is to continue now, and return it; None without one."""
    study = session.study
    fidelity = study.experiment.fidelity
    if fidelity is None:
        return None
    number = next_to_resume(study.climbers(), fidelity)
    trial = None if number is None else study.find(number)
    return None if trial is None else study.resume_paused(trial)


def part_of(session: Session, trial: Trial) -> Part | None:
    """Return the steps that a running trial trains now, with its folder; None without rungs."""
    fidelity = session.study.experiment.fidelity
    if fidelity is None:
        return None
    folder: Path = session.layout.folder(trial.id).path
    folder.mkdir(parents=True, exist_ok=True)
    done, until = fidelity.steps(len(trial.rungs))
    return Part(len(trial.rungs), range(done + 1, until + 1), folder)
