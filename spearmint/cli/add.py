"""``spearmint add``: queue points that the search evaluates next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import cloup

from spearmint.cli.options import json_option, storage_option
from spearmint.cli.targets import split_directory
from spearmint.errors import InputError, next_command

if TYPE_CHECKING:
    from spearmint.model import Experiment
    from spearmint.requests.points import Point


@cloup.command()
@cloup.argument(
    "words",
    metavar="[DIR] NAME=VALUE...",
    nargs=-1,
    required=True,
    help="The directory of config.pb (default: the current one), then values of variables.",
)
@click.option("--repeat", is_flag=True, help="Also queue points that were tried before.")
@click.option("--region", metavar="NAME", help="Add to this region only. Default: all regions.")
@storage_option
@json_option
def add(
    words: tuple[str, ...], repeat: bool, region: str | None, storage: str | None, as_json: bool
) -> None:
    """Queue points that the search evaluates next, also while it runs.

    NAME={A,B} has several values, and NAME=A,B one value for each element. Several values of
    several variables make all combinations, each without the variables that are inactive in it.
    Variables that are left out are chosen by the search. Points that violate require are refused.

    \b
    Examples:
      spearmint add examples/digits lr=0.1 units={64,128}
      spearmint add lr=0.1 'act={relu,tanh}' --region us
    """
    from spearmint.cli.deliver import deliver, later
    from spearmint.config.reader import load_experiment
    from spearmint.config.regions import pick_region
    from spearmint.requests.inbox import Action, Request
    from spearmint.requests.points import read_points
    from spearmint.store.session import known_regions

    directory, values = split_directory(words, lambda word: "=" in word)
    experiment = known_regions(load_experiment(directory))
    points = _inside(experiment, read_points(values, experiment.variables))
    regions = experiment.regions or ("",)
    if region is not None:
        regions = (pick_region(experiment.regions, region),)
    requests = [
        Request(action=Action.ADD, region=name, points=tuple(points), repeat=repeat)
        for name in regions
    ]
    delivery = deliver(directory, storage, requests)
    if as_json:
        data = {"points": points, "regions": list(regions) if experiment.regions else []}
        click.echo(json.dumps({**data, "applied": delivery.is_applied}, indent=2))
        return
    for text in delivery.notes:
        click.echo(text)
    if text := later(delivery):
        click.echo(text)
    elif delivery.by_controller:
        click.echo(f"{_count(points, regions)} The running search evaluates new ones next.")
    else:
        click.echo(f"New ones run with the next: {next_command(experiment.directory)}")


def _inside(experiment: Experiment, points: list[Point]) -> list[Point]:
    """Return the points that meet the linear constraints; print that others are left out.

    Raises:
        InputError: No point meets them.
    """
    from spearmint.store.feasibility import point_problem

    if not experiment.linear:
        return points
    problems = [point_problem(experiment, point) for point in points]
    inside = [point for point, problem in zip(points, problems, strict=True) if not problem]
    wrong = next(filter(None, problems), "")
    if not inside:
        raise InputError(wrong, "Change its values, or relax the constraint in config.pb.")
    if wrong:
        left = len(points) - len(inside)
        click.echo(f"{left} of {len(points)} points are left out: {wrong}", err=True)
    return inside


def _count(points: list[dict[str, float | int | str]], regions: tuple[str, ...]) -> str:
    counted = f"{len(points)} point{'s' if len(points) != 1 else ''}"
    return f"{counted} in {len(regions)} regions." if len(regions) > 1 else f"{counted}."
