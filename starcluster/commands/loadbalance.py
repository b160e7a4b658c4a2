"""``starcluster loadbalance``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from starcluster.balance import Limits
from starcluster.balancer import Balancer
from starcluster.cluster import find
from starcluster.commands.report import progress
from starcluster.life import Life

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
@click.option("-D", "--dump-stats-file", "dump", type=click.Path(path_type=Path), metavar="FILE")
@click.pass_obj
def loadbalance(
    app: App,
    tag: str,
    max_nodes: int | None,
    min_nodes: int,
    interval: float,
    job_wait_time: float,
    add_nodes_per_iter: int,
    kill_after: float,
    stabilization_time: float,
    kill_cluster: bool,
    dump: Path | None,
) -> None:
    """Add nodes while jobs wait, remove idle ones; until Ctrl-C. Needs this machine to stay on.

    \b
    Examples:
      starcluster loadbalance -m 16 gpucluster
      starcluster loadbalance -m 16 -a 4 --kill-cluster gpucluster
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
    life = Life(app.ec2, app.config, tag, progress=progress(), on_bad_node="remove")
    Balancer(life, limits, interval_s=interval, dump=dump, say=click.echo).run()
    click.echo(f"Cluster {tag} is ended.")
