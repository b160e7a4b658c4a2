"""``spearmint worker``: run trials that a broker announces."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from spearmint.cli.setting_options import PlainOption

broker_option = click.option(
    "--broker",
    metavar="URL|FILE",
    default="",
    help='The broker: a URL, or a file that only you can read, with the line url = "...". A URL on '
    "the command line is visible to all users of the host, so use a file if there is a password. "
    "Default: $SPEARMINT_BROKER_URL, $SPEARMINT_BROKER_FILE or ~/.config/spearmint/broker.toml.",
)
queue_option = click.option(
    "-q",
    "--queue",
    metavar="NAME",
    default="",
    help="Use this queue, as --queue of spearmint run does. Default: spearmint.USER.",
)


@cloup.command()
@broker_option
@queue_option
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run only experiments below this directory, and those whose files are sent; repeatable. "
    "Default: the current directory.",
)
@click.option(
    "--gpus",
    metavar="all|N|none",
    default="all",
    help="Run one trial at a time on each of this host's GPUs, on N of them, or trials without a "
    "GPU. Default: all.",
)
@click.option(
    "--slots",
    cls=PlainOption,
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="With --gpus none: run N trials at the same time. Default: 1.",
)
def worker(broker: str, queue: str, roots: tuple[Path, ...], gpus: str, slots: int) -> None:
    """Run the trials of searches with --driver=CELERY on this host.

    If this host does not see the directory of the experiment, its files come by Redis and are kept
    in DIR/.spearmint-worker; that needs a key (see the guide to Celery). SIGTERM or Ctrl-C stops
    the worker after its trials; a second signal ends them.

    \b
    Examples:
      spearmint worker --root /shared/experiments
      spearmint worker --broker broker.toml --gpus 2
      SPEARMINT_BROKER_URL=redis://localhost spearmint worker --gpus none --slots 4
    """
    import logging
    import sys

    from spearmint.drivers.celery.app import require_celery
    from spearmint.drivers.celery.broker import find_broker, queue_name
    from spearmint.drivers.celery.gpus import GpuLocks, gpus_of_host, take_gpus
    from spearmint.drivers.celery.manager import Manager, slots_of
    from spearmint.drivers.celery.slot import SlotSettings

    if gpus not in ("all", "none") and not (gpus.isascii() and gpus.isdecimal() and int(gpus)):
        raise click.BadParameter("use all, none or a positive number", param_hint="'--gpus'")
    require_celery()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    found, base = find_broker(broker), queue_name(queue)
    allowed = tuple(str(root.resolve()) for root in roots or (Path(),))
    taken = {} if gpus == "none" else take_gpus(gpus, gpus_of_host(), GpuLocks())
    common = SlotSettings(
        url=found.url,
        key=found.key,
        ca=found.ca,
        base=base,
        queues=(base,),
        roots=allowed,
        store=found.store,
    )
    click.echo(
        f"worker for queue {base} of {found}, "
        + (f"GPUs {', '.join(taken)}" if taken else f"{slots} trials at a time, no GPU"),
        err=True,
    )
    sys.exit(Manager(slots_of(common, taken, slots)).run())
