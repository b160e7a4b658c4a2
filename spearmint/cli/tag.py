"""``spearmint tag``: mark a trial with words."""

from __future__ import annotations

import json
import re

import click
import cloup

from spearmint.cli.options import json_option, storage_option
from spearmint.cli.targets import find_trials, one_session, read_number, split_directory
from spearmint.errors import InputError

_TAG = re.compile(r"[\w.+@/-]{1,64}")


@cloup.command()
@cloup.argument(
    "words",
    metavar="[DIR] TRIAL [TAG]...",
    nargs=-1,
    required=True,
    help="The directory of config.pb (default: the current one), the number of a trial, tags.",
)
@click.option("--remove", is_flag=True, help="Remove these tags.")
@click.option("--region", metavar="NAME", help="Region of the trial. Default: the only one.")
@storage_option
@json_option
def tag(
    words: tuple[str, ...], remove: bool, region: str | None, storage: str | None, as_json: bool
) -> None:
    """Mark a trial with tags: words of letters, digits and . + @ / - _.

    status, show and export print tags. Without a tag, the tags of the trial are printed.

    \b
    Examples:
      spearmint tag examples/digits 7 good paper
      spearmint tag 7 good --remove
    """
    directory, rest = split_directory(words, str.isdecimal)
    if not rest or (remove and len(rest) < 2):
        raise click.UsageError("Write the number of a trial, then its tags.")
    tags = rest[1:]
    for word in tags:
        if not _TAG.fullmatch(word):
            fix = "Write at most 64 letters, digits and . + @ / - _ in each tag."
            raise InputError(f"invalid tag {word!r}", fix)
    session = one_session(directory, storage, region)
    (trial,) = find_trials(session, [read_number(rest[0])])
    for word in tags:
        session.study.set_tag(trial.id, word, present=not remove)
    (trial,) = session.study.annotated([trial])
    if as_json:
        click.echo(json.dumps(trial.to_json(), indent=2))
        return
    click.echo(f"{trial.label}: {' '.join(trial.tags) or 'no tags'}")
