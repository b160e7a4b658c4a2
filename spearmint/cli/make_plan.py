"""Make the table of ``spearmint plan``. Imports Optuna."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from spearmint.budget.meter import DEFAULT_BILL
from spearmint.cli.plan_screen import MadePlan
from spearmint.config.reader import load_experiment
from spearmint.errors import InputError, NoSearch, SpearmintError
from spearmint.formatting import format_duration
from spearmint.model import Experiment, TrialState
from spearmint.plan import (
    GuessedDurations,
    LearnedDurations,
    NodeOffer,
    Planner,
    Wanted,
    parse_deadline,
    parse_price,
    parse_range,
)
from spearmint.plan.durations import DurationModel
from spearmint.plan.offers import ask_starcluster, bill_offers, read_prices
from spearmint.plan.planner import MOST_TRIALS
from spearmint.plan.schedule import Delays
from spearmint.store.owner import has_secret
from spearmint.store.session import Session, known_regions, read_sessions

_RECENT = 200  # trials of each state and region, as for the budget of a search
_MOST_NEW = 20_000
_NO_PRICES = "Give the prices of nodes: --price g5.xlarge=1.006"
T = TypeVar("T")


def make_plan(
    config: Path,
    *,
    by: str | None,
    budget: float | None,
    max_finished_jobs: int | None,
    max_concurrent: int | None,
    trial_seconds: str | None,
    gpus: float | None,
    storage: str | None,
    nodes: str,
    master_price: float,
    boot: str,
    **kinds: Any,
) -> MadePlan:
    """Return the plans for the options of the command line.

    Raises:
        click.UsageError: An option is invalid.
        SpearmintError: Durations or prices are not known, or no plan keeps the limits.
    """
    numbers = {"--budget": budget, "--gpus": gpus, "--master-price": master_price}
    for flag, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise click.BadParameter(f"{number} is not a finite number", param_hint=flag)
    now = datetime.now().astimezone()
    deadline = _parsed("--by", by, lambda text: parse_deadline(text, now))
    delays = Delays(boot=_parsed("--boot", boot, parse_range) or Delays().boot)
    counts = _parsed("--nodes", nodes, _whole_numbers) or ()
    experiment = known_regions(load_experiment(config))
    if (hosts := experiment.resources.nodes) > 1:
        fix = "A trial on one host can be planned: remove nodes from a copy of config.pb."
        raise InputError(f"cannot plan trials on several hosts (nodes: {hosts})", fix)
    sessions = _sessions(config, storage)
    model, told = _durations(experiment, sessions, trial_seconds)
    ended = [_finished(session) for session in sessions]
    ended += [0] * ((len(experiment.regions) or 1) - len(ended))
    wanted = Wanted(
        by_s=(deadline - now).total_seconds() if deadline else float("inf"),
        budget=float("inf") if budget is None else budget,
        trials=_new_trials(experiment, ended, max_finished_jobs),
        finished=sum(ended),
        regions=len(experiment.regions) or 1,
        gpus=experiment.resources.gpus if gpus is None else gpus,
        at_once=max_concurrent,
        batch=experiment.batch,
        master=master_price,
    )
    offers = _offers(**kinds)
    rows = Planner(wanted, model, delays).rows(offers, counts)
    if not rows:
        raise _no_plan(wanted, offers, told)
    return MadePlan(
        experiment=experiment, now=now, by=deadline, wanted=wanted, durations=told, rows=rows,
        given_budget=budget, given_gpus=gpus, ended=ended, storage=_printable(storage),
    )  # fmt: skip


def _parsed(flag: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=flag) from None


def _whole_numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word[:6]) <= 10000 for word in words):
        raise ValueError(f"invalid numbers {text!r}: expected numbers from 1 to 10000, as in 1,2,4")
    return tuple(sorted({int(word) for word in words}))


def _sessions(config: Path, storage: str | None) -> list[Session]:
    try:
        return read_sessions(config, storage)
    except NoSearch:
        return []


def _printable(storage: str | None) -> str | None:
    """Return the storage for a command that is printed; None with a password, which is not."""
    return None if storage is None or has_secret(storage) else storage


def _finished(session: Session) -> int:
    counts = session.study.counts()
    return sum(counts[s] for s in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.PAUSED))


def _new_trials(experiment: Experiment, ended: Sequence[int], most: int | None) -> int:
    if most is None:
        return MOST_TRIALS
    new = sum(max(most - count, 0) for count in ended)
    if not new:
        raise InputError(
            f"each region has {most} finished trials or more, so there is nothing to plan"
            if experiment.regions
            else f"the search has {sum(ended)} finished trials, so there is nothing to plan",
            "Give a larger --max-finished-jobs.",
        )
    if new > _MOST_NEW:
        raise InputError(
            f"these are {new} new trials, and a plan has at most {_MOST_NEW}",
            "Plan the first ones: give a smaller --max-finished-jobs.",
        )
    return new


def _durations(
    experiment: Experiment, sessions: Sequence[Session], guess: str | None
) -> tuple[DurationModel, str]:
    """Return the model of durations and a sentence about it."""
    found = _parsed("--trial-seconds", guess, parse_range)
    if found is not None:
        low, high = map(format_duration, found)
        return GuessedDurations(*found), f"4 of 5 are expected to take {low} to {high}"
    seconds: dict[TrialState, list[float]] = {}
    finished_states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.PAUSED)
    for state in (*finished_states, TrialState.BROKEN):
        trials = [trial for each in sessions for trial in each.study.last(state, _RECENT)]
        seconds[state] = [trial.seconds for trial in trials if trial.seconds]
    finished = [each for state in finished_states for each in seconds[state]]
    if not finished:
        raise InputError(
            f"no trial has ended in {experiment.directory}, so the time of a trial is not known",
            "Give it with --trial-seconds 90..200, or run some trials first.",
        )
    told = f"{len(finished)} took {format_duration(statistics.median(finished))} (median)"
    return LearnedDurations(finished, seconds[TrialState.BROKEN]), told


def _offers(
    typed: Sequence[str], file: Path | None, types: Sequence[str], speeds: Sequence[str]
) -> list[NodeOffer]:
    """Return the kinds of nodes that the options name."""
    if typed and file is not None:
        raise click.UsageError("Give --price or --prices, not both.")
    offers = [_parsed("--price", text, parse_price) for text in typed]
    found = [offer for offer in offers if offer is not None]
    if not found:
        found = read_prices(file) if file else bill_offers(DEFAULT_BILL) or ask_starcluster()
    if not found:
        raise InputError(f"{file or 'starcluster prices'} lists no prices of nodes", _NO_PRICES)
    chosen = [each for each in found if not types or any(name in each.type for name in types)]
    if not chosen:
        known = ", ".join(sorted({each.type for each in found})) or "none"
        raise InputError(f"no type has {' or '.join(types)} in its name", f"Types: {known}.")
    return _with_speeds(chosen, speeds)


def _with_speeds(offers: Sequence[NodeOffer], speeds: Sequence[str]) -> list[NodeOffer]:
    factors = dict(_parsed("--speed", text, _speed) or ("", 1.0) for text in speeds)
    if unknown := sorted(factors.keys() - {offer.type for offer in offers}):
        raise InputError(f"no price of {', '.join(unknown)}, which --speed names")
    return [dataclasses.replace(offer, speed=factors.get(offer.type, 1.0)) for offer in offers]


def _speed(text: str) -> tuple[str, float]:
    name, _, factor = text.partition("=")
    try:
        number = float(factor)
    except ValueError:
        number = 0.0
    if not name or not 0 < number < float("inf"):
        raise ValueError(f"invalid speed {text!r}: expected TYPE=X, as in g5.xlarge=2.2")
    return name, number


def _no_plan(wanted: Wanted, offers: Sequence[NodeOffer], told: str) -> SpearmintError:
    if all(wanted.gpus > offer.gpus for offer in offers):
        return InputError(
            f"a trial needs {wanted.gpus:g} GPUs, and no node has as many",
            "Give --gpus, or other nodes with --price TYPE=DOLLARS:GPUS.",
        )
    return SpearmintError(
        f"no trial fits: 9 of 10 searches would exceed the limits with one trial ({told})",
        "Give more time (--by), more dollars (--budget), or cheaper nodes (--price).",
    )
