"""``spearmint note``: keep a note with a trial."""

from __future__ import annotations

import json

import click
import cloup

from spearmint.cli.options import json_option, storage_option
from spearmint.cli.targets import find_trials, one_session, read_number, split_directory


@cloup.command()
@cloup.argument(
    "words",
    metavar="[DIR] TRIAL [TEXT]",
    nargs=-1,
    required=True,
    help="The directory of config.pb (default: the current one), the number of a trial, a text.",
)
@click.option("--delete", is_flag=True, help="Delete the notes of the trial.")
@click.option("--region", metavar="NAME", help="Region of the trial. Default: the only one.")
@storage_option
@json_option
def note(
    words: tuple[str, ...], delete: bool, region: str | None, storage: str | None, as_json: bool
) -> None:
    """Keep a note with a trial, next to its earlier notes.

    status, show and export print notes. Without a text, the notes of the trial are printed.

    \b
    Examples:
      spearmint note examples/digits 7 "loss explodes after epoch 20"
      spearmint note 7 --delete
    """
    directory, rest = split_directory(words, str.isdecimal)
    if not rest or len(rest) > 2 or (delete and len(rest) > 1):
        raise click.UsageError("Write the number of a trial, then one text in quotes.")
    session = one_session(directory, storage, region)
    (trial,) = find_trials(session, [read_number(rest[0])])
    if delete:
        session.study.delete_notes(trial.id)
    elif len(rest) > 1:
        session.study.add_note(trial.id, rest[1])
    (trial,) = session.study.annotated([trial])
    if as_json:
        click.echo(json.dumps(trial.to_json(), indent=2))
        return
    click.echo(f"{trial.label}: {'; '.join(trial.notes) or 'no notes'}")
