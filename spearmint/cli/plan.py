"""``spearmint plan``: how many nodes of which type for a deadline and a budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import cloup

from spearmint.cli.options import config_argument, json_option, storage_option
from spearmint.cli.setting_options import PlainOption


def _option(*names: str, **others: Any) -> Any:
    return cloup.option(*names, cls=PlainOption, **others)


@cloup.command()
@config_argument
@cloup.option_group(
    "Limits",
    _option(
        "--by",
        metavar="TIME",
        help="End at this time: a clock time such as 18:00, a date such as '2026-11-26 09:30', or "
        "a duration from now such as 6h. Default: no limit.",
    ),
    _option(
        "--budget",
        type=click.FloatRange(0, min_open=True),
        metavar="DOLLARS",
        help="Spend at most this many dollars on all nodes, from now on. Default: no limit.",
    ),
    _option(
        "--max-finished-jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Plan this many complete or pruned trials, including earlier ones; with regions, of "
        "each region. Default: as many as fit, at most 1000 new ones.",
    ),
    _option(
        "-n",
        "--max-concurrent",
        type=click.IntRange(1),
        metavar="N",
        help="Run at most this many trials at the same time. Default: one for each GPU.",
    ),
)
@cloup.option_group(
    "Trials",
    _option(
        "--trial-seconds",
        metavar="LOW..HIGH",
        help="Expect that 4 of 5 trials take this long, e.g. 90..200, 2m..5m or 120. Default: "
        "learned from the trials that have ended.",
    ),
    _option(
        "--gpus",
        type=click.FloatRange(0),
        metavar="NUMBER",
        help="Count with this many GPUs for each trial, or a share of one; 0 is one trial on each "
        "node. Default: gpus of config.pb, or 1.",
    ),
    _option(
        "--speed",
        "speeds",
        multiple=True,
        metavar="TYPE=X",
        help="Expect trials on nodes of TYPE to be X times faster than their known duration. "
        "Repeatable. Default: 1.",
    ),
)
@cloup.option_group(
    "Nodes",
    _option(
        "--price",
        "typed",
        multiple=True,
        metavar="TYPE=DOLLARS[:GPUS]",
        help="Use nodes of TYPE, with this price per hour and number of GPUs (1). Repeatable. "
        "Default: the nodes of the cluster where it runs, or all that starcluster prices lists.",
    ),
    _option(
        "--prices",
        "file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Use the nodes of FILE, the output of starcluster prices --json. Default: as of "
        "--price.",
    ),
    _option(
        "--type",
        "types",
        multiple=True,
        metavar="NAME",
        help="Use only types with this in their name, e.g. g5. Repeatable. Default: all.",
    ),
    _option(
        "--nodes",
        metavar="N,N,...",
        default="1,2,4,8,16,32",
        help="Compare these numbers of nodes, including the master. Default: 1,2,4,8,16,32.",
    ),
    _option(
        "--master-price",
        type=click.FloatRange(0),
        default=0.0,
        metavar="DOLLARS",
        help="Add this price per hour of a master that runs no trials. Default: 0, the master is "
        "one of the nodes.",
    ),
    _option(
        "--boot",
        metavar="LOW..HIGH",
        default="4m..10m",
        help="Expect that 4 of 5 nodes need this long from their order to their first trial. "
        "Default: 4m..10m.",
    ),
)
@cloup.option_group(
    "Other options",
    _option(
        "--top",
        type=click.IntRange(1),
        metavar="N",
        default=15,
        help="Show the N best plans; --json has all. Default: 15.",
    ),
    storage_option,
    json_option,
)
def plan(config: Path, as_json: bool, top: int, **options: Any) -> None:
    """Compare numbers and types of nodes for a search with a deadline and a budget.

    Each row is a choice of nodes with the trials that 90 % of simulated searches finish within
    the limits, the probable end and cost, and how much each trial teaches compared with a trial
    that runs alone. It starts nothing. The row that teaches most comes first; choose any.

    \b
    Examples:
      spearmint plan --by 18:00 --budget 20 experiment
      spearmint plan --by 6h --trial-seconds 90..200 --price g5.xlarge=1.006 experiment
    """
    from spearmint.cli.make_plan import make_plan
    from spearmint.view.progress import make_console

    made = make_plan(config, **options)
    if as_json:
        click.echo(json.dumps(made.to_json(), indent=2))
        return
    make_console().print(*made.parts(top), sep="\n", soft_wrap=True)
