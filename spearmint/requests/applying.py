"""Apply requests to a study: queue points, and retry failed trials."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from spearmint.config.linear import unmet
from spearmint.config.variables import fits
from spearmint.model import TrialState
from spearmint.requests.inbox import Action, Inbox, Request
from spearmint.requests.points import active_point
from spearmint.store.distributions import to_flat
from spearmint.store.study import Study


def apply(study: Study, inbox: Inbox, request: Request) -> str:
    """Queue the points of a request, once, and delete the request; return a message.

    The caller holds the lock of the search. The points and a mark of the request are one
    transaction: after a kill before the request is deleted, the next call only deletes it.

    Raises:
        StorageError: The database cannot be written; the request stays.
    """
    if request.id in study.applied_requests():
        inbox.remove(request.id)
        return ""
    with study.one_transaction(all_or_nothing=True):
        if request.action is Action.ADD:
            text = _add(study, request)
        else:
            n = retry(study, request.trials)
            text = f"Queued the points of {n} broken trial{'s' if n != 1 else ''}"
        study.mark_applied(request.id, inbox.names())
    inbox.remove(request.id)
    return f"{text} for region {request.region}." if request.region else f"{text}."


def _add(study: Study, request: Request) -> str:
    variables = study.experiment.variables
    inside = [point for point in request.points if _is_inside(study, point)]
    active = (active_point(point, variables) for point in inside)
    points: list[Mapping[str, Any]] = [point for point in active if point]
    if not request.repeat:
        points = new_points(study, points)
    for point in points:
        study.enqueue(point, repeat=True)
    known, outside = len(inside) - len(points), len(request.points) - len(inside)
    text = f"Queued {len(points)} point{'s' if len(points) != 1 else ''}"
    text += f"; {known} were tried or queued before" if known else ""
    return f"{text}; {outside} left out, outside of bounds or require" if outside else text


def _is_inside(study: Study, point: Mapping[str, Any]) -> bool:
    """Return whether a point is in the space; another program can have written the request."""
    variables, linear = study.experiment.variables, study.experiment.linear
    elements = {key: v for v in variables for key in v.elements()}
    known = all(key in elements and fits(elements[key], value) for key, value in point.items())
    return known and unmet(linear, variables, point) is None


def new_points(study: Study, points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the points that no trial has and that are not queued, each once.

    A point that omits variables is known if it is queued.
    """
    variables = study.experiment.variables
    known = {_key(to_flat(variables, trial.params)) for trial in study.at(points)}
    known.update(map(_key, study.queued_points()))
    found: dict[str, Mapping[str, Any]] = {}
    for point in points:
        if _key(point) not in known:
            found[_key(point)] = point
    return list(found.values())


def _key(point: Mapping[str, Any]) -> str:
    return repr(sorted(point.items()))


def retry(study: Study, only: Collection[int] | None = None) -> int:
    """Queue the points that have only failed trials, and disregard these failures.

    A point that a killed controller has queued is not queued again.

    Args:
        study: The study of the trials.
        only: Numbers of the failed trials to retry; None for all.

    Returns:
        The number of points.
    """
    variables = study.experiment.variables
    failed = study.last(TrialState.BROKEN)
    broken = [trial for trial in failed if only is None or trial.id in only]
    points = {_key(point): point for point in (to_flat(variables, t.params) for t in broken)}
    for trial in study.at([*points.values()]):
        if trial.state is not TrialState.BROKEN:
            points.pop(_key(to_flat(variables, trial.params)), None)
    queued = study.queued_points()
    for point in points.values():
        if point not in queued:
            study.enqueue(point, repeat=True)
    study.disregard(broken)
    return len(points)
