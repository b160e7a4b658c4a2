"""``spearmint workers``: list the workers that a broker reaches."""

from __future__ import annotations

import json
import time

import click
import cloup

from spearmint.cli.options import json_option
from spearmint.cli.worker import broker_option, queue_option

_KEYS = ("host", "pid", "gpu", "trial", "since", "roots")


@cloup.command()
@broker_option
@queue_option
@json_option
def workers(broker: str, queue: str, as_json: bool) -> None:
    """List the workers of --driver=CELERY that answer within two seconds.

    \b
    Examples:
      spearmint workers
      spearmint workers --json --broker broker.toml
    """
    from spearmint.drivers.celery.app import Client
    from spearmint.drivers.celery.broker import find_broker, queue_name
    from spearmint.formatting import format_duration, plain

    found, base = find_broker(broker), queue_name(queue)
    answers = Client(found, base).slots(wait_s=2.0)
    slots = sorted(answers, key=lambda slot: (str(slot["host"]), str(slot.get("gpu"))))
    if as_json:
        rows = [{key: slot.get(key) or None for key in _KEYS} for slot in slots]
        click.echo(json.dumps(rows, indent=2))
        return
    if not slots:
        click.echo(f"No worker of queue {base} answers. Start one: spearmint worker --queue {base}")
        return
    table = [("HOST", "GPU", "TRIAL", "RUNS FOR")]
    for slot in slots:
        since = slot.get("since")
        runs_for = format_duration(max(0.0, time.time() - float(since))) if since else "-"
        words = (str(slot["host"]), slot.get("gpu") or "-", slot.get("trial") or "idle", runs_for)
        table.append(tuple(plain(str(word)) for word in words))  # type: ignore[arg-type]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())
