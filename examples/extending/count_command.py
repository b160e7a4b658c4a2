"""``spearmint count``: print the number of trials."""

from pathlib import Path

import click


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
def count(config):
    """Print how many trials the search of CONFIG has, in any state.

    \b
    Examples:
      spearmint count examples/branin
      spearmint count .
    """
    from spearmint.store.session import read_sessions  # loads Optuna, which --help does not need

    sessions = read_sessions(config, storage=None)
    click.echo(sum(len(session.study.trials()) for session in sessions))
