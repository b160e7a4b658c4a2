"""``starcluster loadbalance``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup

from starcluster.balance.decision.decide import Limits
from starcluster.balance.decision.limits import STOP_S, check_limits
from starcluster.balance.loop import Balancer
from starcluster.balance.stats.plots import new_figure
from starcluster.balance.stats.rows import Stats
from starcluster.balance.turn import Turn
from starcluster.cli import login
from starcluster.cli.options import COUNT, Number
from starcluster.cluster.cluster import Cluster, find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.remains import describe_disks, describe_remains
from starcluster.commands import _on_master
from starcluster.commands._report import progress

if TYPE_CHECKING:
    from starcluster.cli.app import App

_OUTPUTS = ("dump_stats", "dump_stats_file", "plot", "plot_output_dir")


@cloup.command()
@cloup.argument("tag")
@cloup.option_group(
    "Common options",
    cloup.option(
        "-m",
        "--max_nodes",
        "--max-nodes",
        type=COUNT,
        metavar="N",
        help="Have at most this many nodes, including the master. "
        "Default: the current number of nodes.",
    ),
    cloup.option(
        "-n",
        "--min_nodes",
        "--min-nodes",
        type=COUNT,
        default=1,
        metavar="N",
        help="Have at least this many nodes, including the master. Default: 1.",
    ),
    cloup.option(
        "-a",
        "--add_nodes_per_iter",
        type=COUNT,
        default=1,
        metavar="N",
        help="Add at most this many nodes at a time. Default: 1.",
    ),
    cloup.option(
        "--budget",
        type=Number(click.FloatRange(0, min_open=True)),
        metavar="DOLLARS",
        help="Stop the cluster before its instances have cost more than this since the start. "
        "Default: budget of the template, or no limit.",
    ),
    cloup.option(
        "--idle-stop",
        type=Number(click.FloatRange(0)),
        metavar="MINUTES",
        help="Stop the cluster when no job was left for this long, in minutes. "
        "Default: idle_stop of the template, or never.",
    ),
    cloup.option(
        "-K",
        "--kill-cluster",
        is_flag=True,
        help="Terminate the cluster when no job is left. Held jobs and jobs in the error state "
        "are left too.",
    ),
)
@cloup.option_group(
    "On the master",
    cloup.option(
        "--install",
        is_flag=True,
        help="Install it on the master, with these options: a systemd unit that runs while this "
        "machine is off. A second --install replaces program and options.",
    ),
    cloup.option(
        "--uninstall", is_flag=True, help="Remove it from the master, and delete its role."
    ),
    cloup.option(
        "--instance-profile",
        metavar="NAME",
        default="",
        help="Give the master this IAM instance profile. Default: make a role that can change "
        "this cluster only.",
    ),
    cloup.option(
        "--dry-run",
        is_flag=True,
        help="Print what would be done now, and change nothing. With --install: print the unit "
        "and the policy of the role.",
    ),
)
@cloup.option_group(
    "Timing",
    cloup.option(
        "-i",
        "--interval",
        type=Number(click.FloatRange(5)),
        default=60,
        metavar="SECONDS",
        help="Check the queue this often, in seconds; at least 5. Default: 60.",
    ),
    cloup.option(
        "-w",
        "--job_wait_time",
        type=float,
        default=900,
        metavar="SECONDS",
        help="Add nodes when a job has waited longer than this, in seconds. Default: 900.",
    ),
    cloup.option(
        "-k",
        "--kill_after",
        type=float,
        default=45,
        metavar="MINUTES",
        help="Remove an idle node only if it is at least this old, in minutes. Default: 45.",
    ),
    cloup.option(
        "-s",
        "--stabilization_time",
        type=float,
        default=180,
        metavar="SECONDS",
        help="Wait this long after a change before the next one, in seconds. Default: 180.",
    ),
)
@cloup.option_group(
    "Statistics and plots",
    cloup.option("-d", "--dump-stats", is_flag=True, help="Write a CSV line at each check."),
    cloup.option(
        "-D",
        "--dump-stats-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the CSV lines to this file. Default: ~/.starcluster/sge/TAG/sge-stats.csv.",
    ),
    cloup.option(
        "-p",
        "--plot",
        "--plot-stats",
        "plot",
        is_flag=True,
        help="Draw jobs and nodes to queue.svg at each check.",
    ),
    cloup.option(
        "-P",
        "--plot-output-dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Write queue.svg to this directory. Default: ~/.starcluster/sge/TAG.",
    ),
    cloup.option(
        "-l",
        "--lookback_window",
        type=Number(click.FloatRange(0, min_open=True)),
        default=3,
        metavar="HOURS",
        help="Cover this many hours in plots and means. Default: 3.",
    ),
)
@click.pass_obj
def loadbalance(
    app: App,
    /,
    tag: str,
    interval: float,
    lookback_window: float,
    install: bool,
    uninstall: bool,
    instance_profile: str,
    dry_run: bool,
    **options: Any,
) -> None:
    """Add nodes for waiting jobs and remove idle nodes, until Ctrl-C.

    It adds a node only if a waiting job would start on it, and prints the reason of each decision.
    This machine must stay on: the command checks the queue from here. With --install the master
    does this instead.

    \b
    Examples:
      starcluster loadbalance -m 16 gpucluster
      starcluster loadbalance -m 16 -a 4 --kill-cluster gpucluster
      starcluster loadbalance -m 16 --budget 50 --idle-stop 60 gpucluster
      starcluster loadbalance -m 16 --dump-stats --plot gpucluster
      starcluster balance --install -m 16 --budget 50 --idle-stop 60 gpucluster
      starcluster balance --uninstall gpucluster
    """
    cluster = find(app.ec2, app.config, tag)
    if uninstall:
        _on_master.uninstall(cluster, instance_profile)
        return
    outputs = {name: options.pop(name) for name in _OUTPUTS}
    limits = limits_of(cluster, interval, **options)
    check_limits(limits, cluster)
    if install:
        _on_master.refuse_outputs(outputs)
        _on_master.install(
            cluster,
            _on_master.options_of(limits, interval),
            instance_profile,
            dry_run=dry_run,
        )
        return
    lifecycle = ClusterLifecycle(
        app.ec2, app.config, tag, progress=progress(), on_bad_node="remove"
    )
    if dry_run:
        Balancer(lifecycle, limits, say=click.echo).look(cluster)
        return
    stats = stats_for(tag, lookback_window, **outputs)
    # The cost is also reported when Ctrl-C ends it.
    with lifecycle.report_cost_on_error(), Turn(on_master=cluster.is_here) as turn:
        end = Balancer(
            lifecycle, limits, interval_s=interval, turn=turn, stats=stats, say=click.echo
        ).run()
    _report_end(app, lifecycle, end)


def limits_of(
    cluster: Cluster,
    interval_s: float,
    *,
    max_nodes: int | None,
    min_nodes: int,
    job_wait_time: float,
    add_nodes_per_iter: int,
    kill_after: float,
    stabilization_time: float,
    kill_cluster: bool,
    budget: float | None,
    idle_stop: float | None,
) -> Limits:
    """Return the limits that the options of the command, named as there, and the config set."""
    return Limits(
        min_nodes=min_nodes,
        max_nodes=max_nodes or max(len(cluster.instances), min_nodes),
        job_wait_s=job_wait_time,
        add_nodes_per_iter=add_nodes_per_iter,
        kill_after_s=kill_after * 60,
        stabilization_s=stabilization_time,
        kill_cluster=kill_cluster,
        budget=budget or cluster.template.budget,
        idle_stop_s=_seconds(cluster.template.idle_stop if idle_stop is None else idle_stop),
        reserve_s=interval_s + STOP_S,
    )


def _report_end(app: App, lifecycle: ClusterLifecycle, end: str) -> None:
    """Print how the cluster ended, and what remains and costs."""
    tag = lifecycle.name
    click.echo(f"Cluster {tag} is {end}.")
    if end == "terminated":
        login.forget(tag)
        for line in describe_remains(app.ec2, lifecycle.remains):
            click.echo(line)
    if end == "stopped":
        click.echo(describe_disks(app.ec2, tag))
        click.echo(f"Start it later: starcluster start -x {tag}")


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * 60


def stats_for(
    tag: str,
    lookback_h: float,
    *,
    dump_stats: bool,
    dump_stats_file: Path | None,
    plot: bool,
    plot_output_dir: Path | None,
) -> Stats | None:
    """Return the writer of CSV lines and plots; None if no option asks for them."""
    home = Path("~/.starcluster/sge").expanduser() / tag
    file = dump_stats_file or (home / "sge-stats.csv" if dump_stats else None)
    plots = plot_output_dir or (home if plot else None)
    if plots is not None:
        new_figure()  # fail before the first node is added, not after
    if file is None and plots is None:
        return None
    return Stats(lookback=timedelta(hours=lookback_h), file=file, plots=plots)
