"""Override config.pb by the command line, and reject options that would have no effect."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import click

from spearmint.cli.setting_options import flags_of
from spearmint.config.regions import read_regions
from spearmint.controller.limits import SearchLimits, StudyLimits
from spearmint.errors import InputError
from spearmint.fields import QUEUE, VARIABLE, Setting, keys_of, settings_of
from spearmint.model import Experiment, Language
from spearmint.resources import Resources
from spearmint.run_options import RunOptions
from spearmint.store.earlier import learns_from_regions
from spearmint.store.session import known_regions


def override_resources(declared: Resources, given: dict[str, Any]) -> Resources:
    """Return ``declared`` of config.pb, overridden by ``given``; variables are merged."""
    changed: dict[str, Any] = {}
    for setting in settings_of(type(declared)):
        if setting.name in given:
            held = getattr(declared, setting.name)
            changed[setting.name] = _override(setting, held, given[setting.name])
    return dataclasses.replace(declared, **changed)


def _override(setting: Setting, held: Any, given: Any) -> Any:
    if setting.kind is VARIABLE:
        return tuple({**dict(held), **dict(given)}.items())
    if isinstance(given, Path):
        with contextlib.suppress(RuntimeError):  # no such user
            given = given.expanduser()
        return given.absolute()
    return given


def override(experiment: Experiment, options: RunOptions) -> Experiment:
    """Return ``experiment`` with the options of the command line."""
    given = {key.sets: getattr(options, key.setting.name) for key in keys_of(RunOptions)}
    given["learn_from"] = (*experiment.learn_from, *options.learn_from)
    given["regions"] = read_regions(options.regions) if options.regions else None
    if options.pruner is not None and options.pruner_args is None:
        given["pruner_args"] = ""  # config.pb has the arguments of another pruner
    changed = {name: value for name, value in given.items() if value is not None}
    return dataclasses.replace(experiment, **changed)


def require_needs(options: RunOptions, experiment: Experiment) -> None:
    """Check that no option is given without another one that it requires.

    Args:
        options: Options of the command line.
        experiment: config.pb with these options.

    Raises:
        click.UsageError: An option has no effect.
    """
    in_config = {key.setting.name: key for key in keys_of(RunOptions)}
    for setting in settings_of(RunOptions):
        if not setting.needs or setting.needs == QUEUE or not _is_given(setting, options):
            continue
        key = in_config.get(setting.needs)
        if not getattr(experiment if key else options, key.sets if key else setting.needs):
            (needed,) = flags_of(RunOptions, [setting.needs])
            other = f", or {key.name} in config.pb" if key else ""
            raise click.UsageError(f"{setting.flag} requires {needed}{other}.")


def require_launcher(experiment: Experiment) -> None:
    """Check that a launcher starts Python code, and that several processes have a launcher.

    Raises:
        InputError: This is not so, on the command line or in config.pb.
    """
    if experiment.launcher and experiment.language is not Language.PYTHON:
        raise InputError(
            f"launcher {experiment.launcher} needs language: PYTHON, "
            f"and {experiment.path} has {experiment.language}",
            "Remove launcher, or write main(job_id, params) in Python.",
        )
    if experiment.processes and not experiment.launcher:
        raise InputError(
            f"{experiment.path} has processes and no launcher",
            'Add a line: launcher: "torchrun"',
        )
    if (nodes := experiment.resources.nodes) > 1 and not experiment.launcher:
        raise InputError(
            f"trials on several hosts (nodes: {nodes}) need a launcher",
            'Add --launcher=torchrun, or a line to config.pb: launcher: "torchrun"',
        )


def require_batch(experiment: Experiment) -> None:
    """Check that jobs of several trials run Python code in one process.

    Raises:
        InputError: They do not, on the command line or in config.pb.
    """
    if experiment.batch == 1:
        return
    if experiment.language is not Language.PYTHON:
        raise InputError(
            f"batch: {experiment.batch} needs language: PYTHON, "
            f"and {experiment.path} has {experiment.language}",
            "Remove batch, or write main_batch(trials) in Python.",
        )
    if experiment.launcher:
        raise InputError(
            f"batch: {experiment.batch} and launcher {experiment.launcher} exclude each other",
            "Remove one of them: the trials of a job train in one process.",
        )


def require_one_host(experiment: Experiment, driver: str) -> None:
    """Check that a driver without a queue has trials on one host only.

    Raises:
        InputError: The trials have several.
    """
    if (nodes := experiment.resources.nodes) > 1:
        raise InputError(
            f"driver {driver} cannot run a trial on several hosts (nodes: {nodes})",
            "Use --driver=SLURM or --driver=SGE, or nodes: 1.",
        )


def require_one_objective(options: RunOptions, experiment: Experiment) -> None:
    """Check that a search with several objectives has no option that needs one.

    Raises:
        InputError: Such an option is given, or in config.pb.
    """
    needing = {
        "--pruner": options.pruner,
        "pruner": experiment.pruner,
        "--target": options.target is not None,
        "--warm-start": options.warm_start,
        "warm_start": experiment.warm_start,
        "--then-final": options.then_final,
        "--again": options.again,
        "--learn-from": options.learn_from,
        "learn_from": experiment.learn_from,
    }
    given = [name for name, is_given in needing.items() if is_given]
    if experiment.has_front and given:
        raise InputError(
            f"{_named(given[0], experiment)} needs one objective, and {experiment.path} has "
            f"{len(experiment.objectives)}",
            f"Remove {given[0]}, or all but one block objective.",
        )


def _named(setting: str, experiment: Experiment) -> str:
    """Return how messages name an option of the command line, or a key of config.pb."""
    return setting if setting.startswith("--") else f"{setting} of {experiment.path}"


def require_regions(experiment: Experiment) -> None:
    """Check that a search whose regions learn from each other has several.

    Raises:
        InputError: It has not.
    """
    with_regions = learns_from_regions(experiment.learn_from)
    if with_regions and len(known_regions(experiment).regions) < 2:
        raise InputError(
            f'learn_from: "regions" needs several regions, and {experiment.path} has '
            f"{len(known_regions(experiment).regions)}",
            'Write a line for each: region: "us". Or name a directory of this name: ./regions',
        )


def require_no_rungs(experiment: Experiment) -> None:
    """Check that a search with rungs has no pruner: pausing does its work.

    Raises:
        InputError: It has one, on the command line or in config.pb.
    """
    if experiment.fidelity is not None and experiment.pruner:
        raise InputError(
            f"a pruner and the block fidelity of {experiment.path} exclude each other",
            "Remove one of them: poor trials pause at the rungs.",
        )


def require_queue(options: RunOptions, resources: dict[str, Any]) -> None:
    """Check that no option is given that requires a driver with a queue.

    Raises:
        click.UsageError: Such an option is given.
    """
    needing = [
        setting.flag
        for setting in settings_of(RunOptions)
        if setting.needs == QUEUE and _is_given(setting, options)
    ]
    flags = [*flags_of(Resources, resources), *needing]
    if flags:
        verb, what = ("requires", "it") if len(flags) == 1 else ("require", "them")
        raise click.UsageError(
            f"{', '.join(flags)} {verb} a queue: add --driver=SGE, or leave {what} out."
        )


def _is_given(setting: Setting, options: RunOptions) -> bool:
    value = getattr(options, setting.name)
    return bool(value) and value != setting.default


def search_limits(options: RunOptions, experiment: Experiment) -> SearchLimits:
    """Return the limits of the whole search."""
    others = {
        "concurrent": options.max_concurrent or 1,
        "trial_time_s": _trial_time_s(options),
        "warm_start": experiment.warm_start,
    }
    return SearchLimits(**{**_limits(options, SearchLimits), **others})


def study_limits(options: RunOptions) -> StudyLimits:
    """Return the limits of each region."""
    return StudyLimits(**_limits(options, StudyLimits))


def _limits(options: RunOptions, cls: type[SearchLimits | StudyLimits]) -> dict[str, Any]:
    """Return the values of the options that are a field of ``cls``."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {
        limit: getattr(options, setting.name)
        for setting in settings_of(RunOptions)
        if (limit := setting.limit or setting.name) in names
    }


def _trial_time_s(options: RunOptions) -> float | None:
    """Return the limit of trial time from time and cost, in seconds; None for no limit."""
    allowed = [] if options.max_trial_time is None else [options.max_trial_time]
    if options.max_cost is not None and options.cost_per_hour is not None:
        allowed.append(options.max_cost / options.cost_per_hour * 3600.0)
    return min(allowed, default=None)
