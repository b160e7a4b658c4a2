"""``starcluster loadbalance``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from starcluster.balance.decide import Limits
from starcluster.balance.loop import Balancer
from starcluster.balance.plots import new_figure
from starcluster.balance.stats import Stats
from starcluster.cluster.cluster import find
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.commands._report import progress

if TYPE_CHECKING:
    from starcluster.cli.app import App


@click.command()
@click.argument("tag")
@click.option("-m", "--max_nodes", "--max-nodes", type=click.IntRange(1), help="Default: as now.")
@click.option("-n", "--min_nodes", "--min-nodes", type=click.IntRange(1), default=1)
@click.option(
    "-i", "--interval", type=click.FloatRange(5), default=60, help="Seconds. Default: 60."
)
@click.option("-w", "--job_wait_time", type=float, default=900, help="Seconds. Default: 900.")
@click.option("-a", "--add_nodes_per_iter", type=click.IntRange(1), default=1)
@click.option("-k", "--kill_after", type=float, default=45, help="Minutes. Default: 45.")
@click.option("-s", "--stabilization_time", type=float, default=180, help="Seconds. Default: 180.")
@click.option("-K", "--kill-cluster", is_flag=True, help="End the cluster when no job is left.")
@click.option(
    "-l",
    "--lookback_window",
    type=click.FloatRange(0, min_open=True),
    default=3,
    help="Hours that plots and means look back. Default: 3.",
)
@click.option("-d", "--dump-stats", is_flag=True, help="A line of CSV at each look.")
@click.option(
    "-D",
    "--dump-stats-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Into this file. Default: ~/.starcluster/sge/TAG/sge-stats.csv.",
)
@click.option("-p", "--plot", is_flag=True, help="Draw jobs and nodes at each look: queue.svg.")
@click.option(
    "-P",
    "--plot-output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Into this directory. Default: ~/.starcluster/sge/TAG.",
)
@click.pass_obj
def loadbalance(
    app: App,
    /,
    tag: str,
    max_nodes: int | None,
    min_nodes: int,
    interval: float,
    job_wait_time: float,
    add_nodes_per_iter: int,
    kill_after: float,
    stabilization_time: float,
    kill_cluster: bool,
    lookback_window: float,
    **outputs: Any,
) -> None:
    """Add nodes while jobs wait, remove idle ones; until Ctrl-C. Needs this machine to stay on.

    \b
    Examples:
      starcluster loadbalance -m 16 gpucluster
      starcluster loadbalance -m 16 -a 4 --kill-cluster gpucluster
      starcluster loadbalance -m 16 --dump-stats --plot gpucluster
    """
    cluster = find(app.ec2, app.config, tag)
    limits = Limits(
        min_nodes=min_nodes,
        max_nodes=max_nodes or max(len(cluster.instances), min_nodes),
        job_wait_s=job_wait_time,
        add_nodes_per_iter=add_nodes_per_iter,
        kill_after_s=kill_after * 60,
        stabilization_s=stabilization_time,
        kill_cluster=kill_cluster,
    )
    lifecycle = ClusterLifecycle(
        app.ec2, app.config, tag, progress=progress(), on_bad_node="remove"
    )
    stats = stats_for(tag, lookback_window, **outputs)
    Balancer(lifecycle, limits, interval_s=interval, stats=stats, say=click.echo).run()
    click.echo(f"Cluster {tag} is ended.")


def stats_for(
    tag: str,
    lookback_h: float,
    *,
    dump_stats: bool,
    dump_stats_file: Path | None,
    plot: bool,
    plot_output_dir: Path | None,
) -> Stats | None:
    """Return what writes and draws as asked; None where nothing was asked."""
    home = Path("~/.starcluster/sge").expanduser() / tag
    file = dump_stats_file or (home / "sge-stats.csv" if dump_stats else None)
    plots = plot_output_dir or (home if plot else None)
    if plots is not None:
        new_figure()  # it must not be found out after the first nodes were added
    if file is None and plots is None:
        return None
    return Stats(lookback=timedelta(hours=lookback_h), file=file, plots=plots)
