"""``spearmint check``: compare the database of a search with its queue and folders."""

from __future__ import annotations

import json
from pathlib import Path

import click
import cloup

from spearmint.cli.options import config_argument, json_option, storage_option
from spearmint.errors import next_command


@cloup.command()
@config_argument
@click.option("--fix", is_flag=True, help="Repair the problems. Needs that no search runs.")
@storage_option
@json_option
def check(config: Path, fix: bool, storage: str | None, as_json: bool) -> int:
    """Compare the database of a search with its queue and folders.

    It names results that are not stored, results that came late, jobs of trials that have ended,
    folders of no trial, requests that no process applied, linear constraints (require) that no
    point meets, and a damaged database. Without --fix nothing changes. The exit code is 1 if
    problems remain.

    \b
    Examples:
      spearmint check examples/digits
      spearmint check --fix examples/digits
    """
    from spearmint.checking import check_search
    from spearmint.config.reader import load_experiment

    found = check_search(config, storage, fix=fix)
    require = load_experiment(config).require
    if as_json:
        rows = [{"what": p.what, "fix": p.fix, "repaired": p.is_repaired} for p in found]
        stated = {"require": require} if require else {}
        click.echo(json.dumps({"problems": rows, **stated}, indent=2))
    else:
        for text in require:
            click.echo(f"Require: {text}")
        for problem in found:
            done = "Repaired. " if problem.is_repaired else ""
            click.echo(f"{problem.what}\n  {done}{problem.fix}")
    left = [problem for problem in found if not problem.is_repaired]
    if not as_json:
        if not found:
            click.echo("No problem found.")
        elif any(problem.can_repair for problem in left) and not fix:
            click.echo(f"Repair: {next_command('check', '--fix', config)}")
    return 1 if left else 0
