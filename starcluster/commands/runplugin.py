"""``starcluster runplugin``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click
import cloup

from starcluster.cluster.cluster import find, only_running
from starcluster.errors import ClusterError
from starcluster.setup.hooks import load_plugins
from starcluster.setup.run import run_hook

if TYPE_CHECKING:
    from starcluster.cli.app import App


@cloup.command()
@cloup.argument("plugin")
@cloup.argument("tag", required=False)
@click.pass_obj
def runplugin(app: App, plugin: str, tag: str | None) -> None:
    """Run a plugin of the config on a running cluster.

    TAG can be omitted if only one cluster is running.

    \b
    Examples:
      starcluster runplugin nvidia_tune
      starcluster runplugin nvidia_tune gpucluster
    """
    chosen = load_plugins([app.config.plugin(plugin)])
    cluster = find(app.ec2, app.config, tag) if tag else only_running(app.ec2, app.config)
    if not cluster.nodes:
        raise ClusterError(
            f"no node of cluster '{cluster.name}' is running ({cluster.state})",
            f"Start it: starcluster start -x {cluster.name}",
        )
    with contextlib.closing(cluster), cluster.setting_up():  # no balancer removes its nodes
        run_hook("run", chosen, cluster.nodes, cluster.template)
    count = len(cluster.nodes)
    click.echo(f"Ran plugin {plugin} on {count} nodes of cluster {cluster.name}.")
